//! What the engine's thread does: reads prompts, chooses tokens, and remembers what it has read.
//!
//! The context keeps what it has read between prompts. The next turn of a conversation, and the next
//! conversation with the same instructions, begin with text that need not be read again.

use std::sync::mpsc;

use archon_types::CancellationToken;

use super::{Beginning, End, EngineOptions, Evidence, Generation, Job, Loaded, Step};
use crate::copying::Copying;
use crate::error::LocalModelError;
use crate::llama::{Context, ContextOptions, Outcomes};
use crate::matcher::Matcher;
use crate::repetition::goes_round;
use crate::vocabulary::Token;

/// The body of the engine's thread.
pub(super) fn run(
    model: &Loaded,
    options: &EngineOptions,
    queue: &mpsc::Receiver<Job>,
    ready: &mpsc::Sender<Result<(), LocalModelError>>,
) {
    let batch = options.batch.clamp(1, model.context);
    let context = ContextOptions { size: model.context, batch, threads: options.threads.max(1) };
    let context = match Context::new(model.model.clone(), &context) {
        Ok(context) => context,
        Err(e) => {
            let _ = ready.send(Err(e));
            return;
        }
    };
    let _ = ready.send(Ok(()));
    let mut worker = Worker { model, context, batch: batch as usize, known: Vec::new() };
    for job in queue {
        match job {
            Job::Generate(mut job) => {
                let last = worker.generate(&mut job).map_or_else(Step::Failed, Step::Done);
                let _ = job.steps.send(last);
            }
            Job::Score(job) => {
                let scores = job.prompts.iter().map(|prompt| worker.scores(prompt, &job.texts, &job.cancel));
                let _ = job.reply.send(scores.collect());
            }
        }
    }
}

struct Worker<'a> {
    model: &'a Loaded,
    context: Context,
    /// Tokens that are read at once.
    batch: usize,
    /// The tokens that the context has read.
    known: Vec<Token>,
}

/// A text is judged by so many of its first tokens.
const MOST_JUDGED: usize = 100;

/// What was said of an answer so far.
struct Said {
    copying: Option<Copying>,
    tokens: usize,
}

impl Worker<'_> {
    fn generate(&mut self, job: &mut Generation) -> Result<End, LocalModelError> {
        let context = self.model.context as usize;
        let reused = self.keep(&job.prompt)?;
        let mut said = Said { copying: None, tokens: 0 };
        if !self.decode(&job.prompt[reused..], &stop(job))? {
            return Ok(End::Cancelled);
        }
        let _ = job.steps.send(Step::Read { fresh: job.prompt.len() - reused, reused });
        if !job.choices.is_empty() {
            let Some(choice) = self.choose(job)? else { return Ok(End::Cancelled) };
            said.copying = choice.copying;
            let read = self.model.tokens(choice.read.as_bytes());
            if !self.decode(&read, &stop(job))? {
                return Ok(End::Cancelled);
            }
            if self.say(choice.said.as_bytes(), job, &mut said)? {
                return Ok(End::Complete);
            }
        }
        let limit = job.max_tokens.min(context.saturating_sub(job.prompt.len()));
        loop {
            let forced = job.matcher.as_ref().map(Matcher::forced).unwrap_or_default();
            if forced.len() > 1 && self.say_forced(&forced, job, &mut said)? {
                return Ok(End::Complete);
            }
            if stop(job)() {
                return Ok(End::Cancelled);
            }
            if said.tokens >= limit {
                return Ok(End::Length);
            }
            if goes_round(&self.known[self.known.len().saturating_sub(said.tokens)..]) {
                return self.break_off(job, &mut said);
            }
            let token = self.next(job, &said)?;
            let bytes = self.model.vocabulary.bytes(token);
            if self.model.vocabulary.ends_text(token) || pass_on(bytes, 1, job, &mut said) {
                return Ok(End::Complete);
            }
            self.decode(&[token], &stop(job))?;
        }
    }

    /// Ends an answer that has nothing new to say: the text that is open is closed, where the grammar allows it.
    fn break_off(&mut self, job: &mut Generation, said: &mut Said) -> Result<End, LocalModelError> {
        let may_close = job.matcher.as_ref().is_some_and(|matcher| matcher.accepts(b"\""));
        if may_close && !self.say(b"\"", job, said)? {
            let forced = job.matcher.as_ref().map(Matcher::forced).unwrap_or_default();
            if forced.is_empty() || !self.say(&forced, job, said)? {
                return Ok(End::Length);
            }
        }
        let complete = may_close || job.matcher.as_ref().is_none_or(Matcher::may_end);
        Ok(if complete { End::Complete } else { End::Length })
    }

    /// The next token, out of what the context knows.
    fn next(&self, job: &mut Generation, said: &Said) -> Result<Token, LocalModelError> {
        let vocabulary = &self.model.vocabulary;
        let mut logits = self.logits(LAST_ROW)?.to_vec();
        if let Some(copying) = &said.copying {
            copying.apply(&mut logits, vocabulary);
        }
        let token = job.sampler.choose(&logits, vocabulary, job.matcher.as_ref());
        token.ok_or_else(|| {
            LocalModelError::engine("choosing a token", "the grammar allows none of the vocabulary")
        })
    }

    /// The beginning that gains most by the prompt; `None` if it was cancelled.
    fn choose(&mut self, job: &mut Generation) -> Result<Option<Beginning>, LocalModelError> {
        if job.choices.len() > 1 {
            let texts: Vec<_> = job.choices.iter().map(|choice| choice.evidence.clone()).collect();
            let Some(mut scores) = self.scores(&job.prompt, &texts, &job.cancel)? else { return Ok(None) };
            for (score, choice) in scores.iter_mut().zip(&job.choices) {
                *score -= choice.bias;
            }
            let chosen = job.sampler.choose_score(&scores);
            job.choices.swap(0, chosen);
            let known = self.keep(&job.prompt)?;
            if !self.decode(&job.prompt[known..], &stop(job))? {
                return Ok(None);
            }
        }
        Ok(Some(job.choices.swap_remove(0)))
    }

    /// The log-probability of each text behind the prompt; `None` if it was cancelled.
    fn scores(
        &mut self,
        prompt: &[Token],
        texts: &[Evidence],
        cancel: &CancellationToken,
    ) -> Result<Option<Vec<f32>>, LocalModelError> {
        let stop = || cancel.is_cancelled();
        let known = self.keep(prompt)?;
        if !self.decode(&prompt[known..], &stop)? {
            return Ok(None);
        }
        let behind_prompt = self.logits(LAST_ROW)?.to_vec();
        let mut scores = Vec::with_capacity(texts.len());
        for text in texts {
            let given = self.model.tokens(text.given.as_bytes());
            let mut judged = self.model.tokens(text.judged.as_bytes());
            judged.truncate(MOST_JUDGED);
            let mut score = match (given.is_empty(), judged.first()) {
                (true, Some(first)) => log_probability(&behind_prompt, *first),
                _ => 0.0,
            };
            let tokens = [given.as_slice(), judged.as_slice()].concat();
            // Each token but the last tells how likely the next one is.
            let Some((_, read)) = tokens.split_last() else { return Ok(None) };
            self.keep_first(prompt, prompt.len())?;
            let mut at = 0;
            for part in read.chunks(self.batch) {
                if !self.decode_for(part, Outcomes::All, &stop)? {
                    return Ok(None);
                }
                for row in 0..part.len() {
                    at += 1;
                    if at >= given.len() {
                        let row = i32::try_from(row).unwrap_or(i32::MAX);
                        score += log_probability(self.logits(row)?, tokens[at]);
                    }
                }
            }
            scores.push(score);
        }
        Ok(Some(scores))
    }

    /// Says a text that is not the model's to decide. True if the answer ends with it.
    fn say(&mut self, text: &[u8], job: &mut Generation, said: &mut Said) -> Result<bool, LocalModelError> {
        let tokens = self.model.tokens(text);
        if pass_on(text, tokens.len(), job, said) {
            return Ok(true);
        }
        self.decode(&tokens, &stop(job))?;
        Ok(false)
    }

    /// Says bytes that the grammar leaves no choice about, all at once. The last token of them is left
    /// to be chosen, because the model may know a longer one that begins with it. True if the answer
    /// ends with them.
    fn say_forced(
        &mut self,
        bytes: &[u8],
        job: &mut Generation,
        said: &mut Said,
    ) -> Result<bool, LocalModelError> {
        let mut ahead = job.matcher.clone();
        if ahead.as_mut().is_some_and(|matcher| matcher.advance(bytes) && matcher.must_end()) {
            return self.say(bytes, job, said);
        }
        let last =
            self.model.tokens(bytes).last().map_or(0, |token| self.model.vocabulary.bytes(*token).len());
        match bytes.len().saturating_sub(last) {
            0 => Ok(false),
            head => self.say(&bytes[..head], job, said),
        }
    }

    /// Forgets what does not begin the prompt; returns how many of its tokens are known. The last one
    /// is always read again, because choosing a token needs its outcome.
    fn keep(&mut self, prompt: &[Token]) -> Result<usize, LocalModelError> {
        let context = self.model.context as usize;
        if prompt.len() >= context {
            return Err(LocalModelError::PromptTooLarge { tokens: prompt.len(), context });
        }
        self.keep_first(prompt, prompt.len().saturating_sub(1))
    }

    /// The same, with at most `most` of them.
    fn keep_first(&mut self, prompt: &[Token], most: usize) -> Result<usize, LocalModelError> {
        let same = self.known.iter().zip(prompt).take_while(|(a, b)| a == b).count();
        let mut keep = same.min(most);
        if keep < self.known.len() {
            if !self.context.forget_from(keep) {
                // Some architectures cannot forget a part.
                self.context.clear();
                keep = 0;
            }
            self.known.truncate(keep);
        }
        Ok(keep)
    }

    /// Reads tokens behind the known ones. False if it was stopped on the way.
    fn decode(&mut self, tokens: &[Token], stop: &dyn Fn() -> bool) -> Result<bool, LocalModelError> {
        self.decode_for(tokens, Outcomes::Last, stop)
    }

    fn decode_for(
        &mut self,
        tokens: &[Token],
        outcomes: Outcomes,
        stop: &dyn Fn() -> bool,
    ) -> Result<bool, LocalModelError> {
        for part in tokens.chunks(self.batch) {
            if stop() {
                return Ok(false);
            }
            if let Err(number) = self.context.decode(part, self.known.len(), outcomes) {
                // What the context holds now is anybody's guess.
                self.context.clear();
                self.known.clear();
                return Err(LocalModelError::engine("reading tokens", format!("llama.cpp says {number}")));
            }
            self.known.extend_from_slice(part);
        }
        Ok(true)
    }

    /// How likely each token is behind a row of the last batch.
    fn logits(&self, row: i32) -> Result<&[f32], LocalModelError> {
        let logits = self.context.logits(row);
        logits.ok_or_else(|| LocalModelError::engine("choosing a token", "nothing was read before it"))
    }
}

/// The last row of a batch.
const LAST_ROW: i32 = -1;

/// Passes on what was said. True if the grammar allows nothing more.
fn pass_on(bytes: &[u8], tokens: usize, job: &mut Generation, said: &mut Said) -> bool {
    said.tokens += tokens;
    let _ = job.steps.send(Step::Piece { bytes: bytes.to_vec(), tokens });
    if let Some(copying) = &mut said.copying {
        copying.wrote(bytes);
    }
    let Some(matcher) = &mut job.matcher else { return false };
    matcher.advance(bytes);
    matcher.must_end()
}

fn stop(job: &Generation) -> impl Fn() -> bool + '_ {
    || job.cancel.is_cancelled() || job.steps.is_closed()
}

fn log_probability(logits: &[f32], token: Token) -> f32 {
    let top = logits.iter().copied().fold(f32::MIN, f32::max);
    let sum: f32 = logits.iter().map(|logit| (logit - top).exp()).sum();
    let logit = usize::try_from(token).ok().and_then(|at| logits.get(at)).copied().unwrap_or(f32::MIN);
    logit - top - sum.ln()
}
