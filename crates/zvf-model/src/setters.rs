//! Setters of structs of options.

/// Defines setters of fields, by their names. The type of a field is that of its setter, or an
/// `Option` of it.
///
/// ```
/// #[derive(Default)]
/// struct Options {
///     /// Replaces what exists.
///     overwrite: bool,
///     /// Maximum number of rows.
///     rows: Option<u64>,
/// }
///
/// impl Options {
///     zvf_model::setters! {
///         overwrite: bool,
///         rows: u64,
///     }
/// }
///
/// let options = Options::default().overwrite(true).rows(10);
/// assert!(options.overwrite && options.rows == Some(10));
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($($name:ident: $type:ty,)*) => {
        $(
            #[doc = concat!(
                "Sets [`", stringify!($name), "`](Self#structfield.", stringify!($name), ")."
            )]
            #[must_use]
            pub fn $name(mut self, $name: $type) -> Self {
                self.$name = $name.into();
                self
            }
        )*
    };
}
