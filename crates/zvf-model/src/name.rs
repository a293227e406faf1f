//! Enums for words of the format, open to words that are unknown to this crate.

/// One of a set of words.
pub(crate) trait Word: for<'a> From<&'a str> {
    /// Description of the words for messages.
    const WHAT: &'static str;

    /// Returns whether the format defines the word.
    fn is_known(&self) -> bool;
}

/// Declares an enum with one variant per word and `Unknown` for all others.
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
            /// Returns the word as stored.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $word, )+
                    Self::Unknown(word) => word,
                }
            }

            /// Returns whether the format defines the word.
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
