//! The Lua scripts of the bus, each with the common part before it.

use redis::Script;

macro_rules! script {
    ($name:literal) => {
        Script::new(concat!(
            include_str!("../scripts/common.lua"),
            include_str!(concat!("../scripts/", $name, ".lua"))
        ))
    };
}

pub(super) struct Scripts {
    pub(super) publish: Script,
    pub(super) subscribe: Script,
    pub(super) tend: Script,
    pub(super) release: Script,
    pub(super) fetch: Script,
    pub(super) settle: Script,
    pub(super) failed: Script,
    pub(super) forget: Script,
    pub(super) depth: Script,
    pub(super) dead: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            publish: script!("publish"),
            subscribe: script!("subscribe"),
            tend: script!("tend"),
            release: script!("release"),
            fetch: script!("fetch"),
            settle: script!("settle"),
            failed: script!("failed"),
            forget: script!("forget"),
            depth: script!("depth"),
            dead: script!("dead"),
        }
    }
}
