//! A macro for enums whose values have stable names.

/// Writes `ALL`, `as_str`, `of_name` and `Display` of an enum: `Type: Variant = "name", ...`. The names are
/// those that serde gives to the variants.
macro_rules! named {
    ($type:ident: $($variant:ident = $name:literal,)+) => {
        impl $type {
            /// All values.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the name of the value, as in logs and JSON.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the value with this name; `None` if there is none.
            pub fn of_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.as_str() == name)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub(crate) use named;
