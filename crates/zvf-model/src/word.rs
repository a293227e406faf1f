//! Words of the format, in fields that may also hold words which this crate does not know.

use core::fmt;

/// A set of words that the format defines.
pub trait Vocabulary: Copy + 'static {
    /// Description of the words for messages.
    const WHAT: &'static str;

    /// Returns the value of a stored word.
    fn of_word(word: &str) -> Option<Self>;

    /// Returns the word as stored.
    fn word(self) -> &'static str;
}

/// A word of a vocabulary, or another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Word<T> {
    /// A word that the format defines.
    Known(T),
    /// Any other word, as it was read.
    Unknown(String),
}

impl<T: Vocabulary> Word<T> {
    /// Returns the word as stored.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(word) => word.word(),
            Self::Unknown(word) => word,
        }
    }

    /// Returns the value, if the format defines the word.
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(word) => Some(*word),
            Self::Unknown(_) => None,
        }
    }
}

impl<T: Vocabulary> From<&str> for Word<T> {
    fn from(word: &str) -> Self {
        T::of_word(word).map_or_else(|| Self::Unknown(word.to_owned()), Self::Known)
    }
}

impl<T: Default> Default for Word<T> {
    fn default() -> Self {
        Self::Known(T::default())
    }
}

impl<T: PartialEq> PartialEq<T> for Word<T> {
    fn eq(&self, other: &T) -> bool {
        matches!(self, Self::Known(word) if word == other)
    }
}

impl<T: Vocabulary> fmt::Display for Word<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Declares an enum with one variant per word of the format.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident as $what:literal {
            $( $(#[$variant_meta:meta])* $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $name {
            $( $(#[$variant_meta])* $variant, )+
        }

        impl $name {
            /// All values.
            pub const ALL: [Self; [$( $word ),+].len()] = [$( Self::$variant ),+];

            /// Returns the value of a stored word.
            pub fn of_word(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == word)
            }

            /// Returns the word as stored.
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )+
                }
            }
        }

        impl crate::word::Vocabulary for $name {
            const WHAT: &'static str = $what;

            fn of_word(word: &str) -> Option<Self> {
                Self::of_word(word)
            }

            fn word(self) -> &'static str {
                self.as_str()
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
