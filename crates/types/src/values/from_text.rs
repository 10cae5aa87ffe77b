//! A macro for types that are made from a text.

/// Implements `From<String>` and `From<&str>` for a type: `Type = function`, where the function takes a
/// `String`.
macro_rules! from_text {
    ($(#[$doc:meta])* $type:ty = $make:expr) => {
        $(#[$doc])*
        impl From<String> for $type {
            fn from(text: String) -> Self {
                ($make)(text)
            }
        }

        $(#[$doc])*
        impl From<&str> for $type {
            fn from(text: &str) -> Self {
                ($make)(text.to_owned())
            }
        }
    };
}

pub(crate) use from_text;
