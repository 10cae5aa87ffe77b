//! Offers agents as models at the OpenAI endpoints Responses and Chat Completions, over a
//! [`RunService`](archon_types::RunService).
//!
//! A [`ModelServer`] makes an axum `Router`. The name of a model is the id of an agent. Every request is a run: it is
//! in the same journal, passes the same guards and asks the same questions as every other run.
//!
//! Use this crate without the facade to offer the agents of a service of your own to OpenAI clients.
//!
//! The router checks no token, no host and no origin. Mount it behind checks, for instance those of `archon-server`: every
//! request that reaches it may start, read and cancel runs of the offered agents.
//!
//! # Routes
//!
//! | route | does |
//! |---|---|
//! | `GET /v1/models`, `GET /v1/models/{id}` | lists the offered agents |
//! | `POST /v1/chat/completions` | starts a run in a session of its own; answers whole, or with `stream` in chunks |
//! | `POST /v1/responses` | starts a run; answers whole, with `stream` in events, or with `background` at once |
//! | `GET /v1/responses/{id}` | the response of a run, also while it works |
//! | `POST /v1/responses/{id}/cancel` | cancels the run |
//!
//! The id of a response is `resp_` followed by the id of its run. The header `x-archon-run` of every response
//! contains the id of the run. If a request with an `Idempotency-Key` is sent again, it gets the answer of the run
//! that it started the first time.
//!
//! # Messages
//!
//! The last `user` messages, after the last message of the assistant, are the prompts of the run. Earlier messages
//! are its restored conversation ([`RunSettings::restored`](archon_types::RunSettings::restored)): the model reads
//! them, but they are untrusted in every role, because the client may have written them itself. `system`, `developer`
//! and `instructions` do not replace the agent's own instructions: the model reads them as messages of the client, in
//! their places in the conversation. They stay in the session. A plan and a team take one text, so they have no
//! restored conversation, and refuse messages of the client after the first prompt.
//!
//! `previous_response_id` continues the session of that response, with the tenant of that response. The response must
//! be the last one of its session. `conversation` is the id of a session of the service's own tenant (`local` if it
//! has none); if there is no such session, it begins. Images must be data URLs, and PDF files data URLs or base64: no address
//! is fetched, and `file_id` is refused.
//!
//! A request with an `Idempotency-Key` and a `previous_response_id` can be sent again, although its own run is now
//! the last one of the session. The log does not contain the key, so that run is recognized by its prompts. A second
//! request with the same prompts but another key may therefore continue the run of the first request, or get the
//! error `session_busy` while that run works.
//!
//! # Fields
//!
//! If a field would change an answer of OpenAI's models, it is either supported, or refused by its name
//! (`unsupported_parameter`, `unsupported_value`). A field with the value null counts as absent.
//!
//! | fields | treatment |
//! |---|---|
//! | `model`, `messages`, `stream`, `stream_options` | read |
//! | `input`, `instructions`, `previous_response_id`, `conversation`, `background` | read |
//! | `user`, `safety_identifier`, `parallel_tool_calls`, `prompt_cache_key`, `prompt_cache_retention`; `metadata` of completions | accepted and not used: they change no answer |
//! | `store` | `false` of completions and `true` of responses only, which are the defaults: no endpoint returns a completion later, and the run of a response always has its log |
//! | `metadata` of responses, `stream_options.include_obfuscation: true` | refused |
//! | `n`, `temperature`, `top_p` | 1 only |
//! | `frequency_penalty`, `presence_penalty`, `top_logprobs` | 0 only |
//! | `tools`, `functions`, `stop`, `include` | the empty list only |
//! | `tool_choice`, `function_call` | `none` and `auto` only |
//! | `logprobs`, `logit_bias`, `reasoning` | `false` and `{}` only |
//! | `response_format`, `text`, `modalities` | text only |
//! | `service_tier`, `truncation`, `verbosity` | the usual values only: `auto`, `default`, `disabled`, `medium` |
//! | `max_tokens`, `max_completion_tokens`, `max_output_tokens`, `seed`, `audio`, `prediction`, and every other | refused |
//!
//! # Answers
//!
//! An answer contains the text of each turn of the run; the last text is the final answer. In a response, each text
//! is a message with the phase `commentary` or `final_answer`. In a chat completion, a blank line is between two
//! texts, except after a turn that the model service paused: such a turn may end in the middle of a sentence, and
//! counts as commentary. [`AgentModel::with_final_answer_only`] returns the final answer alone. Some runs always
//! return the final answer alone, at the end of the stream: runs with a check of the answer (a schema, a goal), runs
//! in text mode, and runs of a plan, a team or a parallel loop.
//!
//! A stream passes on deltas as they arrive. If an answer of the model breaks off and the request is repeated, the
//! stream continues where the first answer ended, as long as the second answer has the same words. If its words
//! differ, the text that was sent cannot be taken back. Then a response stream ends the item as `incomplete`, leaves
//! it out of `output`, and begins another item. A chat completion stream ends with the error `answer_begun_again`,
//! while the run continues.
//!
//! | the run | chat completion | response |
//! |---|---|---|
//! | finished | `stop` | `completed` |
//! | finished, cut by a token limit; refused by the model | `length`; `content_filter` | `incomplete`, with the reason |
//! | reached a limit | `length` | `incomplete`, `max_output_tokens` |
//! | waits for a person or a timer | `length`, and a text that names the run and its questions | `incomplete` without a reason, with the same text |
//! | was cancelled | `length` | `cancelled`; the event is `response.incomplete` |
//! | failed | status 502, `run_failed` | `failed`, with the error |
//!
//! Once a question is answered, the run continues, and `GET /v1/responses/resp_RUN` has the rest. The usage covers
//! the run so far: `total_tokens` is the total of the run and its child runs, and the tokens of child runs count as
//! prompt tokens.
//!
//! # Closed connections
//!
//! If a client closes its connection, its run is cancelled. There are two exceptions. If the request has
//! `background: true` or an `Idempotency-Key`, the run continues, because the client can ask again. If the server
//! ends ([`ModelServerOptions::end`]), the run continues, too. Official clients repeat a request after most errors. The
//! server prevents this with the header `x-should-retry: false`, because a run has effects. But after a broken
//! connection they still repeat the request, so send an `Idempotency-Key` if an effect must not happen twice.
//!
//! *Invariants*
//!
//! - A request cannot change the instructions, tools or limits of an agent.
//! - A whole answer and a stream have the same text.
//! - Only the last `user` messages count as text of a person.
//! - Text that a failed attempt streamed is never repeated in the same part, and never part of the final answer.
//!
//! ```
//! use std::sync::Arc;
//!
//! use archon_openai_serve::{AgentModel, ModelServer, ModelServerOptions, axum::Router};
//! use archon_types::{CancellationToken, Clock, RunService};
//!
//! fn router(runs: Arc<dyn RunService>, clock: Arc<dyn Clock>, end: CancellationToken) -> Router {
//!     let models = [AgentModel::new("desk"), AgentModel::new("writer").with_final_answer_only()];
//!     ModelServer::new(runs, models, clock, ModelServerOptions::default().with_end(end)).router()
//! }
//! ```

// | concept | file |
// |---|---|
// | `ModelServer`, `ModelServerOptions`, `AgentModel` | `server.rs`, `options.rs`, `model.rs` |
// | the table of fields | `fields.rs` |
// | messages of a request, their texts, images and PDF files | `conversation.rs`, `content.rs` |
// | the start of a run; the cancel after a closed connection | `start.rs`, `guard.rs` |
// | the text of a run, the same for a stream and for a whole response | `transcript.rs`, `follow.rs`, `ending.rs` |
// | chat completions | `chat.rs`, `completion.rs`, `chat_stream.rs` |
// | responses | `responses.rs`, `response_object.rs`, `response_stream.rs` |
// | errors | `error.rs` |

mod body;
mod chat;
mod chat_stream;
mod completion;
mod content;
mod conversation;
mod ending;
mod error;
mod fields;
mod follow;
mod guard;
mod headers;
mod model;
mod options;
mod path_id;
mod response_object;
mod response_stream;
mod responses;
mod server;
mod shared;
mod start;
mod stream;
mod transcript;

/// The crate `axum`, in the version that the router uses.
pub use axum;
pub use model::AgentModel;
pub use options::ModelServerOptions;
pub use server::ModelServer;
