//! The engine's thread, which processes prompts, chooses tokens, and reuses the tokens in its context.
//!
//! The context is kept between prompts. The next turn of a conversation, and the next conversation with the
//! same instructions, begin with tokens that need not be processed again.

use std::sync::mpsc;

use archon_types::CancellationToken;

use super::prompt_cache::PromptCache;
use super::{Beginning, End, Evidence, Generation, Job, Loaded, Prompt, Step};
use crate::copying::Copying;
use crate::engine_options::LocalEngineOptions;
use crate::error::LocalModelError;
use crate::llama::{Context, ContextOptions, Outcomes};
use crate::matcher::Matcher;
use crate::repetition::goes_round;
use crate::vocabulary::Token;

/// Runs the engine's thread.
pub(super) fn run(
    model: &Loaded,
    options: &LocalEngineOptions,
    cache: Option<PromptCache>,
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
    let mut worker = Worker { model, context, batch: batch as usize, known: Vec::new(), cache };
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
    /// The number of tokens that are processed at once.
    batch: usize,
    /// The tokens in the context.
    known: Vec<Token>,
    cache: Option<PromptCache>,
}

/// The maximum number of tokens of a text that count for its score: only the first ones count.
const MOST_JUDGED: usize = 100;

/// The usual maximum length of a token in bytes.
const LONGEST_TOKEN: usize = 32;

/// The progress of the answer.
struct AnswerProgress {
    copying: Option<Copying>,
    tokens: usize,
    /// The maximum number of tokens of the answer.
    limit: usize,
}

impl AnswerProgress {
    fn remaining_tokens(&self) -> usize {
        self.limit.saturating_sub(self.tokens)
    }
}

impl Worker<'_> {
    fn generate(&mut self, job: &mut Generation) -> Result<End, LocalModelError> {
        let reused = self.keep(&job.prompt)?;
        let mut said = AnswerProgress { copying: None, tokens: 0, limit: job.max_tokens };
        if !self.read(&job.prompt, reused, &stop(job))? {
            return Ok(End::Cancelled);
        }
        let _ = job.steps.send(Step::Read { fresh: job.prompt.tokens.len() - reused, reused });
        if !job.choices.is_empty() {
            let Some(choice) = self.choose(job)? else { return Ok(End::Cancelled) };
            said.copying = choice.copying;
            let read = self.model.tokens(choice.read.as_bytes());
            if !self.show(&choice.shown, job)? || !self.decode(&read, &stop(job))? {
                return Ok(End::Cancelled);
            }
            if self.say(choice.said.as_bytes(), job, &mut said)? {
                return Ok(End::Complete);
            }
        }
        let room = (self.model.context as usize).saturating_sub(self.known.len());
        said.limit = said.limit.min(said.tokens + room);
        self.write(job, &mut said)
    }

    /// Processes the text that is shown after the prompt. The text is the same in each new conversation, so
    /// it stays in the context.
    fn show(&mut self, shown: &str, job: &Generation) -> Result<bool, LocalModelError> {
        let shown = self.model.tokens(shown.as_bytes());
        let Prompt { tokens, fixed } = &job.prompt;
        // In a prompt that is fixed as a whole, only the last token does not count as fixed.
        if shown.is_empty() || fixed + 1 < tokens.len() {
            return self.decode(&shown, &stop(job));
        }
        let tokens = [tokens.as_slice(), &shown].concat();
        let prompt = Prompt { fixed: tokens.len() - 1, tokens };
        let known = self.keep(&prompt)?;
        self.read(&prompt, known, &stop(job))
    }

    /// Writes the answer token by token, and completes it within its token limit if possible.
    fn write(&mut self, job: &mut Generation, said: &mut AnswerProgress) -> Result<End, LocalModelError> {
        loop {
            if stop(job)() {
                return Ok(End::Cancelled);
            }
            if said.remaining_tokens() == 0 {
                let is_whole = job.matcher.as_ref().is_some_and(Matcher::may_end);
                return Ok(if is_whole { End::Complete } else { End::Length });
            }
            if goes_round(&self.known[self.known.len().saturating_sub(said.tokens)..]) {
                match self.break_off(job, said)? {
                    Some(end) => return Ok(end),
                    None => continue,
                }
            }
            let forced = self.forced(job);
            let (bytes, tokens) = match forced.is_empty() {
                false => (forced.clone(), self.model.tokens(&forced)),
                true => {
                    let token = self.next(job, said)?;
                    if self.model.vocabulary.ends_text(token) {
                        return Ok(End::Complete);
                    }
                    (self.model.vocabulary.bytes(token).to_vec(), vec![token])
                }
            };
            if let Some(end) = self.due_end(&bytes, tokens.len(), job, said) {
                self.say(&end, job, said)?;
                return Ok(End::Complete);
            }
            if tokens.len() > said.remaining_tokens() {
                return Ok(End::Length);
            }
            if pass_on(&bytes, tokens.len(), job, said) {
                return Ok(End::Complete);
            }
            self.decode(&tokens, &stop(job))?;
        }
    }

    /// Returns the text that must end the answer now, because after `bytes` too few tokens would remain for
    /// any end that the grammar allows. Returns `None` without a grammar, if an end still fits after
    /// `bytes`, or if no end fits even now, so that the answer will be cut off.
    fn due_end(
        &self,
        bytes: &[u8],
        tokens: usize,
        job: &Generation,
        said: &AnswerProgress,
    ) -> Option<Vec<u8>> {
        let matcher = job.matcher.as_ref()?;
        let mut after = matcher.clone();
        if !after.advance(bytes) {
            return None;
        }
        let left = said.remaining_tokens();
        let fits = left.checked_sub(tokens).is_some_and(|left| {
            // A token is at least one byte, so in most cases no end need be tokenized.
            after.shortest_end().is_some_and(|bytes| bytes <= left as u64) || self.end(&after, left).is_some()
        });
        if fits { None } else { self.end(matcher, left) }
    }

    /// Returns the shortest text with which the answer may end; `None` if it has more than `tokens` tokens.
    fn end(&self, matcher: &Matcher, tokens: usize) -> Option<Vec<u8>> {
        let end = matcher.end(tokens.saturating_mul(LONGEST_TOKEN) as u64)?;
        (self.model.tokens(&end).len() <= tokens).then_some(end)
    }

    /// Ends a repeating answer: closes the open string, or otherwise the whole text, if the grammar allows
    /// it. Returns `None` if the answer continues.
    fn break_off(
        &mut self,
        job: &mut Generation,
        said: &mut AnswerProgress,
    ) -> Result<Option<End>, LocalModelError> {
        let Some(matcher) = &job.matcher else { return Ok(Some(End::Length)) };
        let mut closed = matcher.clone();
        if closed.advance(b"\"")
            && (closed.may_end() || self.end(&closed, said.remaining_tokens() - 1).is_some())
        {
            let is_over = self.say(b"\"", job, said)?;
            return Ok(is_over.then_some(End::Complete));
        }
        let Some(end) = self.end(matcher, said.remaining_tokens()) else { return Ok(Some(End::Length)) };
        self.say(&end, job, said)?;
        Ok(Some(End::Complete))
    }

    /// Chooses the next token from the logits of the context.
    fn next(&self, job: &mut Generation, said: &AnswerProgress) -> Result<Token, LocalModelError> {
        let vocabulary = &self.model.vocabulary;
        let mut logits = self.logits(LAST_ROW)?.to_vec();
        if let Some(copying) = &said.copying {
            copying.apply(&mut logits, vocabulary);
        }
        let token = job.sampler.choose(&logits, vocabulary, job.matcher.as_ref());
        token.ok_or_else(|| {
            LocalModelError::engine("choosing a token", "the grammar allows no token of the vocabulary")
        })
    }

    /// Returns the beginning whose probability the prompt raises most; `None` if the work was cancelled.
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
            if !self.read(&job.prompt, known, &stop(job))? {
                return Ok(None);
            }
        }
        Ok(Some(job.choices.swap_remove(0)))
    }

    /// Returns the log-probability of each text after the prompt; `None` if the work was cancelled.
    fn scores(
        &mut self,
        prompt: &Prompt,
        texts: &[Evidence],
        cancel: &CancellationToken,
    ) -> Result<Option<Vec<f32>>, LocalModelError> {
        let stop = || cancel.is_cancelled();
        let known = self.keep(prompt)?;
        if !self.read(prompt, known, &stop)? {
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
            // The logits after each token but the last give the likelihood of the next one.
            let Some((_, read)) = tokens.split_last() else { return Ok(None) };
            self.keep_first(&prompt.tokens, prompt.tokens.len())?;
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

    /// Writes a text that the model does not choose. Returns true if the answer ends with this text.
    fn say(
        &mut self,
        text: &[u8],
        job: &mut Generation,
        said: &mut AnswerProgress,
    ) -> Result<bool, LocalModelError> {
        let tokens = self.model.tokens(text);
        if pass_on(text, tokens.len(), job, said) {
            return Ok(true);
        }
        self.decode(&tokens, &stop(job))?;
        Ok(false)
    }

    /// Returns the next bytes of the answer if the grammar allows only one continuation, so that they can be
    /// written at once; empty if these are fewer than two bytes. The bytes of the last token are not
    /// returned, because the model may choose a longer token that begins with them.
    fn forced(&self, job: &Generation) -> Vec<u8> {
        let Some(matcher) = &job.matcher else { return Vec::new() };
        let mut bytes = matcher.forced();
        if bytes.len() < 2 {
            return Vec::new();
        }
        let mut ahead = matcher.clone();
        if !(ahead.advance(&bytes) && ahead.must_end()) {
            let last = self.model.tokens(&bytes).last().map_or(0, |t| self.model.vocabulary.bytes(*t).len());
            bytes.truncate(bytes.len().saturating_sub(last));
        }
        bytes
    }

    /// Removes from the context all tokens after the prefix that it shares with the prompt, and loads the
    /// prompt's fixed prefix from the cache. Returns the number of the prompt's tokens in the context. The
    /// prompt's last token is always processed again, because its logits are needed.
    fn keep(&mut self, prompt: &Prompt) -> Result<usize, LocalModelError> {
        let (tokens, context) = (&prompt.tokens, self.model.context as usize);
        if tokens.len() >= context {
            return Err(LocalModelError::PromptTooLarge { tokens: tokens.len(), context });
        }
        let known = self.keep_first(tokens, tokens.len().saturating_sub(1))?;
        let fixed = &tokens[..prompt.fixed];
        let Some(cache) = &self.cache else { return Ok(known) };
        if known >= fixed.len() {
            if cache.holds(fixed) {
                return Ok(known);
            }
            // The prefix is known only as a part of another prompt. A process that begins with this prompt
            // would have to compute it, so it is cached now.
            let known = self.keep_first(fixed, fixed.len())?;
            self.store(fixed);
            return Ok(known);
        }
        let Some(beginning) = cache.load(fixed) else { return Ok(known) };
        self.known.clear();
        if self.context.restore(&beginning) {
            self.known.extend_from_slice(fixed);
        }
        self.keep_first(tokens, tokens.len().saturating_sub(1))
    }

    /// Writes the state of the context to the cache, if a cache exists. The context must contain exactly
    /// these tokens.
    fn store(&mut self, beginning: &[Token]) {
        let is_written = self.cache.as_ref().is_none_or(|cache| cache.store(beginning, &self.context.save()));
        if !is_written {
            // The folder cannot be written to, and each further attempt would cost time.
            self.cache = None;
        }
    }

    /// Processes the tokens of the prompt after the first `known`, and caches the prompt's fixed prefix.
    /// Returns false if the work was cancelled.
    fn read(
        &mut self,
        prompt: &Prompt,
        known: usize,
        stop: &dyn Fn() -> bool,
    ) -> Result<bool, LocalModelError> {
        let (fixed, rest) = prompt.tokens.split_at(prompt.fixed.max(known));
        if known < fixed.len() {
            if !self.decode(&fixed[known..], stop)? {
                return Ok(false);
            }
            self.store(fixed);
        }
        self.decode(rest, stop)
    }

    /// Keeps at most `most` tokens of the common prefix of context and prompt, and returns their number.
    fn keep_first(&mut self, prompt: &[Token], most: usize) -> Result<usize, LocalModelError> {
        let same = self.known.iter().zip(prompt).take_while(|(a, b)| a == b).count();
        let mut keep = same.min(most);
        if keep < self.known.len() {
            if !self.context.forget_from(keep) {
                // Some model architectures cannot remove a part of the context.
                self.context.clear();
                keep = 0;
            }
            self.known.truncate(keep);
        }
        Ok(keep)
    }

    /// Processes tokens after those in the context. Returns false if the work was cancelled.
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
                // The state of the context is unknown now.
                self.context.clear();
                self.known.clear();
                return Err(LocalModelError::engine(
                    "reading tokens",
                    format!("llama.cpp returned the error {number}"),
                ));
            }
            self.known.extend_from_slice(part);
        }
        Ok(true)
    }

    /// Returns the logits after token `row` of the last batch, counted from 0: one logit for each token of
    /// the vocabulary.
    fn logits(&self, row: i32) -> Result<&[f32], LocalModelError> {
        let logits = self.context.logits(row);
        logits.ok_or_else(|| LocalModelError::engine("choosing a token", "no tokens were processed before"))
    }
}

/// The value of `row` that means the last token of a batch.
const LAST_ROW: i32 = -1;

/// Sends the bytes to the receiver. Returns true if the grammar allows no further text.
fn pass_on(bytes: &[u8], tokens: usize, job: &mut Generation, said: &mut AnswerProgress) -> bool {
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
