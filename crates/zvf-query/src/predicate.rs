//! The predicate language of `zvf query --where`: parser, binding and evaluation.
//!
//! [`Predicate::parse`] makes a syntax tree of text. [`Predicate::bind`] resolves its columns in a
//! [`ColumnSource`], checks types and translates text to category codes.
//! [`BoundPredicate::evaluate`] evaluates it for a row, [`BoundPredicate::may_match`] prunes ranges
//! of rows by a [`ZoneMap`].
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
//! or        = and { ( "or" | "||" ) and }
//! and       = not { ( "and" | "&&" ) not }
//! not       = ( "not" | "!" ) not | "(" or ")" | test
//! test      = operand compare operand
//!           | operand [ "not" ] "between" operand "and" operand
//!           | operand [ "not" ] "in" "(" literal { "," literal } ")"
//!           | operand "is" [ "not" ] "null"
//!           | column | "true" | "false" | "null"
//! compare   = "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">="
//! operand   = column | literal
//! column    = [ scope "." ] name [ "[" channel "]" ]
//! scope     = "vertex" | "fragment" | "link" | "object" | "group"
//! name      = letter or "_", then letters, digits and "_", of any script; any other
//!             in double quotes, with "" for a quote
//! literal   = integer of i64 or u64 | float | text in single quotes, with '' for a
//!             quote | "true" | "false" | "null"
//! ```
//!
//! Keywords are case-insensitive; a name that equals a keyword needs double quotes. White space
//! may separate any two tokens. Text longer than [`MAX_LENGTH`] bytes or nested deeper than
//! [`MAX_DEPTH`] is rejected.
//!
//! # Meaning
//!
//! * A row satisfies a predicate if the predicate is [`Truth::True`] for the row. Every comparison
//!   with a missing value or with `null` is [`Truth::Unknown`]; `and`, `or` and `not` follow SQL.
//!   Therefore `x = null` is never true; use `x is null`.
//! * NaN is a missing value: it `is null`, and `x != 1` and `not x = 1` are both unknown for it.
//! * Numbers of different types compare by value: an int64 and a float64 are equal only if they
//!   are the same number, not if they round to the same number. `0.0` equals `-0.0`.
//! * `between` includes both bounds. `in` is a chain of `=` joined by `or`.
//! * Text compares by its UTF-8 bytes, that is, by code points. Bool columns compare with `true`
//!   and `false` by `=`, `!=` and `in`; `false` does not equal 0. [`Predicate::bind`] rejects
//!   comparisons of values of different types.
//! * A column with several channels needs a channel index: `rgb[0]`.
//! * A name without a scope is searched in all scopes; a name found in several is an error. Queries
//!   also search the axes of the store: `z > 560`.

mod ast;
mod batch;
mod bind;
mod columns;
mod display;
mod error;
mod eval;
mod fold;
mod lexer;
mod number;
mod parser;
mod scoped_columns;
mod table;
mod truth;
mod zone;

pub use ast::{ColumnRef, Comparison, Literal, Operand, Predicate};
pub use bind::{BindError, BoundPredicate};
pub use columns::{ColumnSource, ColumnType, Datum, FindError, ResolvedColumn, ValueType};
pub use error::{Expected, MAX_DEPTH, MAX_LENGTH, ParseError, ParseErrorKind};
pub use number::Number;
pub use scoped_columns::ScopedColumns;
pub use table::{CellTable, TableError};
pub use truth::Truth;
pub use zone::{Zone, ZoneMap};
pub use zvf_catalog::Scope;
