//! A macro for types that are made from a text.

/// Writes the conversions of a type from `String` and `&str`: `Type = function`.
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
