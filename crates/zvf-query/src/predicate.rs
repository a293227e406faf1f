//! Predicates on attributes: what `zvf query --where` says.
//!
//! ```
//! use zvf_query::predicate::{Predicate, Scope};
//!
//! let predicate = Predicate::parse("vertex.radius >= 2 and (kind = 'axon' or rgb[0] in (0, 255))")?;
//! assert_eq!(predicate.columns_by_scope()[&Some(Scope::Vertex)], ["radius"].into());
//! let error = Predicate::parse("radius >").unwrap_err();
//! assert_eq!(error.to_string(), "at byte 8: expected a column or a value");
//! # Ok::<(), zvf_query::predicate::ParseError>(())
//! ```
//!
//! # Language
//!
//! ```text
//! or        = and { "or" and }
//! and       = not { "and" not }
//! not       = "not" not | "(" or ")" | test
//! test      = operand compare operand
//!           | operand [ "not" ] "between" operand "and" operand
//!           | operand [ "not" ] "in" "(" literal { "," literal } ")"
//!           | operand "is" [ "not" ] "null"
//!           | column | "true" | "false" | "null"
//! compare   = "=" | "!=" | "<" | "<=" | ">" | ">="
//! operand   = column | literal
//! column    = [ scope "." ] name [ "[" channel "]" ]
//! scope     = "vertex" | "fragment" | "link" | "object" | "group"
//! name      = letter or "_", then letters, digits and "_", of ASCII; any other in
//!             double quotes, with "" for a quote
//! literal   = integer of i64 or u64 | float | text in single quotes, with '' for a
//!             quote | "true" | "false" | "null"
//! ```
//!
//! Keywords may be written in any case; a name that is a keyword needs quotes.
//! White space may be between any two tokens. A text of more than
//! [`MAX_LENGTH`] bytes, and one nested deeper than [`MAX_DEPTH`], is refused.
//!
//! # Meaning
//!
//! * A row satisfies a predicate that is [`Truth::True`] for it. Of a missing
//!   value, and of `null`, every comparison is [`Truth::Unknown`], and `and`, `or`
//!   and `not` are those of SQL. `x = null` is therefore never true; `x is null`
//!   is.
//! * A NaN is a value: it `is not null`. It compares false to everything,
//!   itself included and with `!=` too; `not x = 1` holds for it.
//! * Numbers are compared by value, whatever their types: an int64 and a
//!   float64 are equal when they are the same number, not when they round to
//!   the same one. `0.0` equals `-0.0`.
//! * `between` includes both ends. `in` is a chain of `=` with `or`.
//! * Text compares by its UTF-8 bytes, which is by code points. Bool columns
//!   compare with `true` and `false` by `=`, `!=` and `in`; false is not 0.
//!   Comparing values of different types is an error when the predicate is
//!   [bound](Predicate::bind), before any row is looked at.
//! * A column of several channels needs the one meant: `rgb[0]`.
//! * A name without scope is looked for in all scopes, and an error when
//!   several have it.

mod ast;
mod batch;
mod bind;
mod columns;
mod display;
mod eval;
mod fold;
mod lexer;
mod number;
mod parser;
mod table;
mod truth;
mod zone;

pub use ast::{ColumnRef, Comparison, Literal, Operand, Predicate, Scope};
pub use bind::{BindError, BoundPredicate};
pub use columns::{ColumnSource, ColumnType, Datum, FindError, ResolvedColumn, ValueType};
pub use number::Number;
pub use parser::{Expected, MAX_DEPTH, MAX_LENGTH, ParseError, ParseErrorKind};
pub use table::{CellTable, TableError};
pub use truth::Truth;
pub use zone::{Zone, ZoneMap};
