//! A macro for the methods that set one field of a value.

/// Writes methods that set one field and return the value: `name(argument: Type) => field = value;`.
macro_rules! setters {
    ($type:ident: $($(#[$doc:meta])+ $name:ident($argument:ident: $of:ty) => $($field:ident).+ = $value:expr;)+) => {
        impl $type {
            $($(#[$doc])+ pub fn $name(mut self, $argument: $of) -> Self {
                self.$($field).+ = $value;
                self
            })+
        }
    };
}

pub(crate) use setters;
