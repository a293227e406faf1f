//! Enums for words of the format, open to words nobody here knows.

/// One of a set of words.
pub(crate) trait Word: for<'a> From<&'a str> {
    /// What one of these words is called in a message.
    const WHAT: &'static str;

    /// Whether the format knows the word.
    fn is_known(&self) -> bool;
}

/// Declares an enum with one variant a word and `Unknown` for all others.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident as $what:literal {
            $( $(#[$variant_meta:meta])* $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        $vis enum $name {
            $( $(#[$variant_meta])* $variant, )+
            /// Any other word, as it was read.
            Unknown(String),
        }

        impl $name {
            /// The word as it stands in a store.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $word, )+
                    Self::Unknown(word) => word,
                }
            }

            /// Whether the format knows the word.
            pub fn is_known(&self) -> bool {
                !matches!(self, Self::Unknown(_))
            }
        }

        impl crate::name::Word for $name {
            const WHAT: &'static str = $what;

            fn is_known(&self) -> bool {
                self.is_known()
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $( $word => Self::$variant, )+
                    _ => Self::Unknown(word.to_owned()),
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;
