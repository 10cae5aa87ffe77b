//! Agents of a program as models of the OpenAI Responses and Chat Completions endpoints, over a
//! [`RunService`](archon_types::RunService).
//!
//! A [`ModelServer`] gives an axum `Router`. The name of a model is the id of an agent, and every request is a run: it is in the
//! same journal, passes the same guards and asks the same questions as every other run.
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
//! The id of a response is `resp_` and the id of its run. The header `x-archon-run` of every response names the run. With
//! an `Idempotency-Key`, a request that is sent again gets the answer of the run that it started before.
//!
//! # Messages
//!
//! The last `user` messages, after the last one of the assistant, are the prompts of the run. Earlier messages are its
//! restored conversation ([`RunSettings::restored`](archon_types::RunSettings::restored)): the model reads them, but they are
//! untrusted whatever their roles are, because the client may have written them itself. `system`, `developer` and
//! `instructions` do not replace the agent's own instructions: the model reads them as messages of the client, at their
//! places. They stay in the session. A plan and a team take one text, so they have no restored conversation, and refuse
//! messages of the client after those of the role `user`.
//!
//! `previous_response_id` continues the session of a response, which must be its last, for the tenant of that response.
//! `conversation` is the id of a session of the service's own tenant (`local` if it has none), and begins it if there is
//! none. Images are data URLs. No address is fetched.
//!
//! A request with an `Idempotency-Key` and a `previous_response_id` can be sent again, although its own run is now the last
//! of the session. No log has the key, so the run is known by its prompts. A second request with the same prompts and another
//! key may therefore continue the run of the first, or get `session_busy` while that run works.
//!
//! # Fields
//!
//! One rule: a field that would change an answer of OpenAI's models is honoured or refused by its name
//! (`unsupported_parameter`, `unsupported_value`), and null is the same as no field.
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
//! An answer has the text of each turn of the run; the last one is the final answer. The texts are messages of a response, with the phases `commentary` and `final_answer`; in a chat completion a blank line is between them, except
//! after a turn that the service of the model paused, which is commentary in the middle of a sentence.
//! [`AgentModel::with_final_answer_only`] returns the final answer alone. A run whose answer is checked (a schema, a goal), in text
//! mode, or of a plan, a team or a parallel loop always has its final answer alone, at the end of the stream.
//!
//! A stream passes on deltas as they come. If a model's answer breaks off and is asked for again, the second answer goes on
//! where the first ended as long as it has the same words. If its words differ, nothing takes back what was sent: a stream
//! of a response ends that item as `incomplete`, which its `output` leaves out, and begins another item; a stream of a chat
//! completion ends with the error `answer_begun_again`, while the run goes on.
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
//! Once a question is answered, the run goes on, and `GET /v1/responses/resp_RUN` has the rest. The usage is that of the run
//! so far: `total_tokens` is its whole bill, and tokens of child runs count as tokens of the prompt.
//!
//! # Closed connections
//!
//! If a client closes its connection, its run is cancelled. The run goes on if the request has `background: true` or an
//! `Idempotency-Key`, because the client can ask again, and if the server ends ([`ModelServerOptions::end`]). Official clients
//! repeat a request after most errors; the header `x-should-retry: false` of the server prevents this, because a run has
//! effects. They still repeat it after a broken connection, so send an `Idempotency-Key` if an effect must not happen twice.
//!
//! *Invariants*
//!
//! - A request changes no instructions, tools or limits of an agent.
//! - A whole answer and a stream have the same text.
//! - Only the last messages of the role `user` count as text of a person.
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
// | messages of a request, their texts and images | `conversation.rs`, `content.rs` |
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

/// The library of the router, in the version that fits.
pub use axum;
pub use model::AgentModel;
pub use options::ModelServerOptions;
pub use server::ModelServer;
