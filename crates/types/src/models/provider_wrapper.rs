//! A macro for wrappers of a provider: it writes the methods that only call the wrapped provider.

/// Writes methods of [`Provider`](crate::Provider) that only call the wrapped provider. The arguments are the
/// field of the wrapper that has this provider, and the methods: any of `id`, `secrets`, `capabilities` and
/// `stream`.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::{
///     BoxStream, CancellationToken, ModelEvent, Provider, ProviderError, Request, provider_methods_of,
/// };
///
/// /// Tells the model which day it is.
/// struct Dated {
///     inner: Arc<dyn Provider>,
/// }
///
/// impl Provider for Dated {
///     provider_methods_of!(inner: id, secrets, capabilities);
///
///     fn stream(
///         &self,
///         mut request: Request,
///         cancel: CancellationToken,
///     ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
///         request.system = Some(Arc::new("It is Monday.".to_owned().into()));
///         self.inner.stream(request, cancel)
///     }
/// }
/// ```
#[macro_export]
macro_rules! provider_methods_of {
    (@id $field:tt) => {
        fn id(&self) -> &str {
            $crate::Provider::id(&*self.$field)
        }
    };
    (@secrets $field:tt) => {
        fn secrets(&self) -> ::std::vec::Vec<$crate::Redactor> {
            $crate::Provider::secrets(&*self.$field)
        }
    };
    (@capabilities $field:tt) => {
        fn capabilities(&self, model: &str) -> $crate::Capabilities {
            $crate::Provider::capabilities(&*self.$field, model)
        }
    };
    (@stream $field:tt) => {
        fn stream(
            &self,
            request: $crate::Request,
            cancel: $crate::CancellationToken,
        ) -> $crate::BoxStream<'static, ::std::result::Result<$crate::ModelEvent, $crate::ProviderError>> {
            $crate::Provider::stream(&*self.$field, request, cancel)
        }
    };
    ($field:tt: $($method:ident),+ $(,)?) => {
        $($crate::provider_methods_of!(@$method $field);)+
    };
}
