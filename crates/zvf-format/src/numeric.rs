//! Rows of numbers: coordinates, attributes and every other numeric cell.
//!
//! | part | size in bytes | content |
//! |---|---|---|
//! | values | rows · columns · s | row by row, the columns of a row side by side, nothing before, between or after them |
//!
//! The blob contains neither type nor shape. The type is the attribute `dtype`, s is its
//! [size](Dtype::size); up to 0.8.0, and for per-chunk cells up to 0.8.1, the Zarr arrays
//! themselves are of type `uint8` and the attributes are those of the group above them; arrays
//! without one, `vertices` or attributes, are `float32`. Nothing is aligned.
//!
//! | cell | rows | columns |
//! |---|---|---|
//! | `vertices`, `vertices_<kind>` | what the length gives | the number of axes |
//! | `vertex_attributes/<name>` | rows of the chunk's vertices, which is the [extent](crate::fragment::FragmentIndex::extent) of its fragment index | length / (rows · s) |
//! | `fragment_attributes/<name>` | fragments of the index | length / (rows · s) |
//! | link attributes | links of the cell beside it | length / (rows · s) |
//! | `object_attributes/<name>`, `group_attributes/<name>`, `parametric/…` | first number of the attribute `shape` | the second, 1 without |
//! | `object_attributes/<name>/present_mask` (up to 0.8.0) | objects | 1; `uint8`, 0 for a dropped object. Later a dropped object's row is the array's fill value |
//! | `parametric/objects` | what the length gives | `max_row_length`: type id, coefficients, then NaN |
//!
//! [`columns_of`] divides the length by the number of rows; a division with a remainder
//! means an invalid cell. It takes precedence over the attributes `row_shape` and `channel_names`:
//! known writers leave `row_shape` empty for attributes of several columns. A cell truncated
//! between two rows is a valid shorter cell, which only these counts reveal.
//!
//! | kind | code | s | one value |
//! |---|---|---|---|
//! | `bool` | `b1` | 1 | 0 is false, any other byte true, as numpy reads it back; written as 0 and 1 |
//! | `int8` `int16` `int32` `int64` | `i1` `i2` `i4` `i8` | 1 2 4 8 | two's complement |
//! | `uint8` `uint16` `uint32` `uint64` | `u1` `u2` `u4` `u8` | 1 2 4 8 | unsigned |
//! | `float16` `float32` `float64` | `f2` `f4` `f8` | 2 4 8 | IEEE 754 binary16, binary32, binary64 |
//! | `complex64` `complex128` | `c8` `c16` | 8 16 | real part, then imaginary part, a binary32 or binary64 each |
//!
//! A `dtype` is written in one of two ways. A name, as in `float32`, means little-endian. The array
//! protocol's form is one character of byte order and a code, as in `<f4`: `<` is little-endian,
//! `>` big-endian, `=` little-endian as well (a store has no native order), and `|` no order, for
//! one-byte values only. A one-byte value may have any of the four. In a complex value each of the
//! two parts has that order, and the real part is first.
//!
//! Other spellings are rejected, including a code without its byte order (`f4`). Only these dtypes
//! are read. Old writers dumped the in-memory form of NumPy text and the addresses of objects:
//! neither can be read back safely, and [`DtypeError`] reports them.
//!
//! [`NumericRows::value`] returns a single widened value; [`NumericRows::elements`] returns all
//! values in their own type.
//!
//! ```
//! use zvf_format::numeric::{Dtype, NumericRows, Value};
//!
//! let dtype = Dtype::parse("<f4")?;
//! let bytes = b"\0\0\x80\xbf\0\0\0\x40\0\0\x40\x40\0\0\0\0";
//! let rows = NumericRows::parse(bytes, dtype, 2.try_into()?)?;
//! assert_eq!(rows.value(1, 0), Some(Value::Float(3.0)));
//!
//! let elements = rows.elements::<f32>().ok_or("no float32")?;
//! let mut values = [0.0; 4];
//! elements.copy_to(&mut values)?;
//! assert_eq!(values, [-1.0, 2.0, 3.0, 0.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod dtype;
mod element;
mod rows;

pub use dtype::{ByteOrder, Dtype, DtypeError, Kind};
#[cfg(feature = "alloc")]
pub use element::encode;
pub use element::{CopyLength, Element, Elements, KindVisitor, Value};
pub use rows::{NumericRows, NumericRowsError, columns_of};
