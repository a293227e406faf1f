//! SWC, skeletons of neurons.
//!
//! Lines of text; `#` starts a comment. Every other line is a sample of seven numbers, separated by
//! blanks or tabs:
//!
//! | column | content |
//! |---|---|
//! | 1 | id, not negative |
//! | 2 | type: 0 undefined, 1 soma, 2 axon, 3 basal dendrite, 4 apical dendrite, others by convention |
//! | 3, 4, 5 | x, y, z |
//! | 6 | radius |
//! | 7 | id of the parent, or -1 for a root |
//!
//! A parent may follow its children. Further columns are left out, with a note.
//!
//! # In a store
//!
//! A file is an object. A folder is one store of all its `.swc` files, by name. The id of an object is
//! the number that the file name is, if all names are different numbers; otherwise its rank. Samples
//! are vertices, and their parents links (child, parent).
//!
//! Files are read one after another, in batches of whole files. The types of the columns depend on all
//! files, which are therefore read once more before if they exceed
//! [`FileReadOptions::in_memory`](crate::FileReadOptions::in_memory).
//!
//! | attribute | content |
//! |---|---|
//! | `vertex.swc_id`, `vertex.type`, `vertex.radius` | columns 1, 2 and 6 |
//! | `vertex.source_row` | number of the sample in its file, if ids do not ascend |
//! | `object.name` | name of the file without extension |
//!
//! Coordinates and radii are float32 if its shortest text is the number of the file, otherwise
//! float64. The unit is that of a comment `# Meta: {"units": "micrometer"}`, as navis writes it, if a file
//! has one. Lengths in a multiple of a unit, such as `8 nanometer`, are multiplied by it. The writer adds it if the axes have a unit, and corrects one that states another unit.
//!
//! `headers/swc` has the comments of each file with the numbers of their lines, up to 8 MiB. The
//! writer restores ids, order and comments. Numbers have the fewest digits that read back as the
//! same number. A name with `{object}` or `{name}` becomes a file for each object; otherwise all
//! objects are written to one file, with new ids if theirs repeat. Links have to form trees. 0 stands
//! for a type that is no integer of 32 bits, and for a radius that is not finite.

mod reader;
mod sample;
mod writer;

use serde_json::Value;

use zvf_tables::length::LengthUnit;

pub use reader::SwcReader;
pub use writer::SwcWriter;

/// Returns a comment, which states `unit` if it states another one.
fn in_unit(comment: &str, unit: &str) -> String {
    let is_other = stated_unit(comment).is_some_and(|stated| {
        stated.name != unit || stated.multiple().to_bits() != 1_f64.to_bits()
    });
    let parts = comment.split_once("Meta:").filter(|_| is_other);
    let stated = parts.and_then(|(mark, text)| {
        let mut meta: Value = serde_json::from_str(text).ok()?;
        *meta.get_mut("units")? = unit.into();
        Some(format!("{mark}Meta: {meta}"))
    });
    stated.unwrap_or_else(|| comment.to_owned())
}

/// The unit that a comment states: a multiple of a unit of length, such as `8 nanometer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StatedUnit {
    /// The full name of the unit.
    name: &'static str,
    /// The bits of the multiple, which is a normal number above 0.
    multiple: u64,
}

impl StatedUnit {
    fn multiple(self) -> f64 {
        f64::from_bits(self.multiple)
    }
}

/// Returns the unit that a comment states.
fn stated_unit(comment: &str) -> Option<StatedUnit> {
    let line = comment.trim_start_matches('#').trim_start();
    let text = line.strip_prefix("Meta:")?;
    let meta: Value = serde_json::from_str(text).ok()?;
    let stated = meta.get("units")?.as_str()?.trim();
    let (number, name) = stated.split_once(' ').unwrap_or(("1", stated));
    let name = LengthUnit::of(name)?.name;
    let multiple: f64 = number.parse().ok()?;
    let is_length = multiple.is_normal() && multiple > 0.0;
    is_length.then_some(StatedUnit {
        name,
        multiple: multiple.to_bits(),
    })
}
