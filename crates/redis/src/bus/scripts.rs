//! The Lua scripts of the bus, each with the common part before it.

use redis::Script;

macro_rules! scripts {
    ($($name:ident),+) => {
        pub(super) struct Scripts {
            $(pub(super) $name: Script,)+
        }

        impl Scripts {
            pub(super) fn new() -> Self {
                Self {
                    $($name: Script::new(concat!(
                        include_str!("../scripts/common.lua"),
                        include_str!(concat!("../scripts/", stringify!($name), ".lua"))
                    )),)+
                }
            }
        }
    };
}

scripts!(publish, subscribe, tend, release, fetch, settle, failed, forget, depth, dead);
