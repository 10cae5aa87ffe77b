//! A macro for the `Debug` of types that contain functions, connections or secrets.

/// Implements `Debug` for a type: shows the name of the type and the listed fields, and leaves out all other
/// fields. To list a field of a field, give it a name: `name = parts.name`.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_fields {
    ($type:ident $(<$($of:ident),+>)? $(: $($field:ident $(= $($path:tt).+)?),+)?) => {
        impl $(<$($of),+>)? ::std::fmt::Debug for $type $(<$($of),+>)? {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $($(.field(stringify!($field), $crate::debug_fields!(@ self $field $($($path).+)?)))+)?
                    .finish_non_exhaustive()
            }
        }
    };
    (@ $this:ident $field:ident) => {
        &$this.$field
    };
    (@ $this:ident $field:ident $($path:tt).+) => {
        &$this.$($path).+
    };
}
