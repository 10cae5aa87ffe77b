//! A macro that writes setters from their signatures.

/// Writes setters from their signatures. The body of each setter is the assignment of one field; the setter
/// returns the changed value. The input has the form of an `impl` block, so that `cargo xtask reach` finds
/// the setters.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    (impl $type:ident { $(
        $(#[$attribute:meta])*
        $vis:vis fn $name:ident(self, $argument:ident: $of:ty) -> Self { self.$($field:ident).+ = $value:expr }
    )* }) => {
        impl $type { $(
            $(#[$attribute])*
            $vis fn $name(mut self, $argument: $of) -> Self {
                self.$($field).+ = $value;
                self
            }
        )* }
    };
}
