//! Setters of structs of options.

/// Defines setters of fields, by their names.
///
/// The type of a field is that of its setter, or an `Option` of it. A setter
/// of `into T` takes any `impl Into<T>`. A setter of a private field needs its own documentation.
///
/// ```
/// #[derive(Default)]
/// struct Options {
///     /// Replaces what exists.
///     overwrite: bool,
///     /// Maximum number of rows.
///     rows: Option<u64>,
///     name: Option<String>,
/// }
///
/// impl Options {
///     zvf_model::setters! {
///         overwrite: bool,
///         rows: u64,
///         /// Sets the name of the table.
///         name: into String,
///     }
/// }
///
/// let options = Options::default().overwrite(true).rows(10).name("a");
/// assert!(options.overwrite && options.rows == Some(10));
/// assert_eq!(options.name.as_deref(), Some("a"));
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    () => {};
    ($name:ident: $($rest:tt)*) => {
        $crate::setters! {
            #[doc = concat!(
                "Sets [`", stringify!($name), "`](Self#structfield.", stringify!($name), ")."
            )]
            $name: $($rest)*
        }
    };
    ($(#[$meta:meta])+ $name:ident: into $type:ty, $($rest:tt)*) => {
        $(#[$meta])+
        #[must_use]
        pub fn $name(mut self, $name: impl Into<$type>) -> Self {
            self.$name = Into::<$type>::into($name).into();
            self
        }

        $crate::setters! { $($rest)* }
    };
    ($(#[$meta:meta])+ $name:ident: $type:ty, $($rest:tt)*) => {
        $(#[$meta])+
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.$name = $name.into();
            self
        }

        $crate::setters! { $($rest)* }
    };
}
