//! Who said what, and what is kept of it: random conversations with agents that remember, over one store. Whatever is
//! prompted, compacted, forked, reset, restored or taken up by another process, what a tool said is never believed, nor a
//! model that repeats it, and what a person said is there once for each time that it was said.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use archon::{
    AgentMemory, Archon, Conversation, RunOptions, Tool,
    memory::{HashEmbedder, InMemoryStore, Memory, RuleExtractor},
    react_loop::PickFirst,
    store::InMemoryJournal,
    tools::FnTool,
    types::{
        AgentMessage, Clock, ContextConfig, ExecutionLimits, ForkOptions, MemoryEntry, MemoryFilter,
        MemoryKind, Message, RunId, Timestamp, ToolCall, ToolContext, ToolMode, ToolResult, ToolSpec, Trust,
    },
};
use archon_testkit::{Chance, Ended, FnProvider, SeededIds, VirtualClock, all_entries, cases, first_seed};
use serde_json::{Value, json};

use crate::memory::collections::of;

/// What every page says. The extractor would learn it, if a person said it.
const PAGE: &str = "My name is Sauron. I live in Mordor.";

/// What outlives a process, and what the person said.
struct World {
    journal: InMemoryJournal,
    memory: Memory,
    clock: VirtualClock,
    ids: Arc<SeededIds>,
    chance: Arc<Mutex<Chance>>,
    said: Arc<Mutex<Vec<(String, Timestamp)>>>,
    /// Runs that can be left for another way.
    runs: Vec<RunId>,
}

impl World {
    fn new(seed: u64) -> Self {
        let (clock, ids) = (VirtualClock::new(), Arc::new(SeededIds::new(1)));
        let store = InMemoryStore::new().collection(of("user:anna")).unwrap();
        let memory = Memory::new(Arc::new(store), Arc::new(clock.clone()), ids.clone());
        Self {
            journal: InMemoryJournal::new(),
            memory: memory.with_embedder(Arc::new(HashEmbedder)),
            clock,
            ids,
            chance: Arc::new(Mutex::new(Chance(seed))),
            said: Arc::default(),
            runs: Vec::new(),
        }
    }

    fn below(&self, n: u64) -> u64 {
        self.chance.lock().unwrap().below(n)
    }

    /// As in a process that has just begun.
    fn agent(&self) -> Archon {
        let mut window = ContextConfig::default();
        (window.max_context_tokens, window.system_prompt_tokens) = (1_500 + 1_500 * self.below(3), 0);
        let mut limits = ExecutionLimits::default();
        (limits.max_turns, limits.max_repeats) = (6, 1_000);
        let mode = if self.below(3) == 0 { ToolMode::Native } else { ToolMode::Text };
        Archon::builder()
            .provider(Arc::new(self.model()), "m")
            .tools([self.page()])
            .tool_mode(mode)
            .context(window)
            .limits(limits)
            .journal(Arc::new(self.journal.clone()))
            .clock(Arc::new(self.clock.clone()))
            .ids(self.ids.clone())
            .memory(AgentMemory::new(self.memory.clone()).with_extractor(Arc::new(RuleExtractor)))
            .build()
            .unwrap()
    }

    /// Looks at pages, writes what nobody understands, and answers, at times with what it has read somewhere.
    fn model(&self) -> FnProvider {
        let chance = self.chance.clone();
        FnProvider::new(move |_, request| {
            let (roll, n) = {
                let mut chance = chance.lock().unwrap();
                (chance.below(100), chance.next() % 1_000_000)
            };
            let read = request.messages.iter().any(|message| message.text().contains("Sauron"));
            let answer = if read && roll >= 80 { format!("{n}, says Sauron") } else { n.to_string() };
            match (roll, request.tools.is_empty()) {
                (..60, false) => {
                    FnProvider::calls(vec![ToolCall::new(format!("c{n}"), "page", json!({ "n": n }))])
                }
                (..60, true) => {
                    let action = json!({"tool": "page", "arguments": {"n": n}});
                    FnProvider::text(&format!("Thought: page {n}\nAction: {action}"))
                }
                (60..70, true) => FnProvider::text(&format!("Action: {{{n}")),
                (_, true) => FnProvider::text(&format!("Thought: done\nFinal Answer: {answer}")),
                (_, false) => FnProvider::text(&answer),
            }
        })
    }

    /// A page, which at times says just what the person said.
    fn page(&self) -> Arc<dyn Tool> {
        let (chance, said) = (self.chance.clone(), self.said.clone());
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let spec = ToolSpec::new("page", "Reads a page.", schema);
        Arc::new(FnTool::new(spec, move |_: Value, _: ToolContext| {
            let roll = chance.lock().unwrap().below(100);
            let echo = said.lock().unwrap().last().map(|(text, _)| text.clone()).filter(|_| roll < 15);
            let filler = "word ".repeat(usize::try_from(roll).unwrap_or(0) * 8);
            async move { Ok(ToolResult::success(echo.unwrap_or_else(|| format!("{PAGE} {filler}")))) }
        }))
    }

    /// A new saying, or an old one again.
    fn say(&mut self) -> AgentMessage {
        let now = self.clock.now();
        let mut said = self.said.lock().unwrap();
        let old = self.chance.lock().unwrap().below(4 * said.len() as u64 + 1);
        let again = usize::try_from(old).ok().and_then(|at| said.get(at)).map(|(text, _)| text.clone());
        let text = again.unwrap_or_else(|| format!("Number {} is what I like.", said.len()));
        said.push((text.clone(), now));
        Message::user(text, now).into()
    }

    /// Prompts once or several times in one moment, with what waits.
    async fn prompt(&mut self, talk: &Conversation) {
        self.clock.advance(Duration::from_millis(1));
        let prompts: Vec<AgentMessage> = (0..=self.below(2)).map(|_| self.say()).collect();
        let run = talk.prompt_messages(prompts).await.unwrap();
        self.runs.push(run.run_id().clone());
        run.reply().await.ended();
    }

    async fn step(&mut self, agent: &mut Archon, talk: &mut Conversation) {
        self.clock.advance(Duration::from_millis(1 + self.below(5_000)));
        match self.below(100) {
            0..15 => talk.reset(),
            15..25 => *agent = self.agent(),
            25..35 => {
                let saved = talk.save_messages().await.unwrap();
                talk.restore_messages(&saved).unwrap();
            }
            35..40 => _ = talk.new_session().unwrap(),
            40..55 if !self.runs.is_empty() => self.fork(agent).await,
            55..65 if !self.runs.is_empty() => {
                let (one, other) = (self.agent(), self.agent());
                let both = agent.parallel([one, other], Arc::new(PickFirst)).unwrap();
                let prompt = self.say();
                let text = prompt.as_llm().unwrap().text();
                let last = agent.newest_run(None).await.unwrap().unwrap();
                let mut options = RunOptions::default();
                options.session = last.session;
                both.run_with(text, options).await.unwrap();
            }
            65..75 => {
                let (steer, later) = (self.say(), self.say());
                // What waits is said when the next run begins, with the time at which it was said.
                talk.steer(steer.as_llm().unwrap().text()).await.unwrap();
                talk.follow_up(later.as_llm().unwrap().text()).await.unwrap();
            }
            _ => {}
        }
        if self.below(3) == 0
            && let Some(last) = agent.newest_run(None).await.unwrap()
        {
            self.prompt(talk).await;
            *talk = agent.conversation_in(last.session.unwrap()).await.unwrap();
        }
        self.prompt(talk).await;
    }

    /// Leaves a run for another way, and lets the model have the next word if it is its turn.
    async fn fork(&mut self, agent: &Archon) {
        let run = self.runs[usize::try_from(self.below(self.runs.len() as u64)).unwrap()].clone();
        let turns = u32::try_from(self.below(3)).unwrap();
        let Ok(fork) = agent.fork(&run, ForkOptions::after(turns)).await else { return };
        if fork.wants_answer {
            agent.resume(fork.run).await.unwrap().reply().await.ended();
        }
    }

    async fn check(&self, case: u64) {
        let entries = all_entries(&**self.memory.store(), MemoryFilter::all()).await;
        for entry in &entries {
            let text = &entry.content;
            // What a tool said, who repeats it, and what the program says of it, which comes in when somebody restores it.
            let others = ["Sauron", "Mordor", "parsing your response"].iter().any(|sign| text.contains(sign));
            assert!(!others || entry.trust == Trust::Untrusted, "{case}: {text} {:?}", entry.trust);
        }
        let mut said: BTreeMap<&str, Vec<Timestamp>> = BTreeMap::new();
        let all = self.said.lock().unwrap();
        all.iter().for_each(|(text, at)| said.entry(text).or_default().push(*at));
        let is_persons =
            |entry: &&MemoryEntry| entry.kind == MemoryKind::Turn && entry.trust == Trust::Trusted;
        let mut kept: BTreeMap<&str, Vec<Timestamp>> = BTreeMap::new();
        for entry in entries.iter().filter(is_persons) {
            kept.entry(&entry.content).or_default().push(entry.timestamp);
        }
        kept.values_mut().for_each(|times| times.sort());
        assert_eq!(kept, said, "{case}");
    }
}

// spec: M-23, M-24, C-18
#[tokio::test]
async fn memory_random_conversations_store_each_message_once_and_never_trust_tools() {
    for case in 0..cases(4, 400) {
        let mut world = World::new(first_seed().wrapping_mul(1_000_003).wrapping_add(case));
        let mut agent = world.agent();
        let mut talk = agent.conversation();
        for _ in 0..8 {
            world.step(&mut agent, &mut talk).await;
        }
        world.check(case).await;
    }
}
