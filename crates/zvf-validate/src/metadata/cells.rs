//! Metadata of arrays whose cells are rows: fragment indexes and attributes.

use std::collections::BTreeSet;

use serde_json::Value;
use zvf_format::numeric::Kind;
use zvf_model::{
    array::{CellAttribute, Dictionary, FragmentArray},
    metadata::JsonKind,
};

use super::{NodeCheck, faults};
use crate::rules::metadata as rules;

impl NodeCheck<'_, '_> {
    pub(super) fn fragments(&self) {
        let read = FragmentArray::parse(self.key, self.node.attributes());
        faults::noted(self.context, self.key, read);
    }

    pub(super) fn attribute(&self) {
        let read = CellAttribute::parse(self.key, self.node.attributes());
        let Some(attribute) = faults::noted(self.context, self.key, read) else {
            return;
        };
        if let (Some(names), Some(shape)) = (&attribute.channel_names, &attribute.row_shape) {
            let columns = shape
                .iter()
                .fold(1, |n: u64, extent| n.saturating_mul(*extent));
            if u64::try_from(names.len()) != Ok(columns) {
                let message = format!("{} names for {columns} columns", names.len());
                let place = "attributes.channel_names";
                self.context
                    .report_at(&rules::CHANNELS, self.key, place, message);
            }
        }
        match &attribute.dictionary {
            Some(dictionary) => self.dictionary(dictionary, attribute.dtype.kind()),
            // Without the encoding, readers take codes as values.
            None if self.node.attributes().contains_key("categories") => {
                let message =
                    "there are categories, but no encoding declares the values to be codes";
                let place = "attributes.encoding";
                self.context
                    .report_at(&rules::DICTIONARY, self.key, place, message);
            }
            None => {}
        }
    }

    fn dictionary(&self, dictionary: &Dictionary, kind: Kind) {
        let find = |field: &str, message: String| {
            let place = format!("attributes.{field}");
            self.context
                .report_at(&rules::DICTIONARY, self.key, place, message);
        };
        // Number of nonnegative codes of the type.
        let max: Option<u64> = match kind {
            Kind::Int8 => Some(1 << 7),
            Kind::UInt8 => Some(1 << 8),
            Kind::Int16 => Some(1 << 15),
            Kind::UInt16 => Some(1 << 16),
            Kind::Int32 => Some(1 << 31),
            Kind::UInt32 => Some(1 << 32),
            Kind::Int64 | Kind::UInt64 => Some(u64::MAX),
            _ => None,
        };
        let count = u64::try_from(dictionary.categories.len()).unwrap_or(u64::MAX);
        match max {
            None => find("dtype", format!("{}, but codes are integers", kind.name())),
            Some(max) if count > max => {
                find(
                    "categories",
                    format!("{count} categories exceed the codes of {}", kind.name()),
                );
            }
            _ => {}
        }
        let unsigned = matches!(
            kind,
            Kind::UInt8 | Kind::UInt16 | Kind::UInt32 | Kind::UInt64
        );
        if let Some(fill) = dictionary.fill {
            let is_code = u64::try_from(fill).is_ok_and(|fill| fill < count);
            if is_code {
                let message = format!("{fill} marks absent values, but is also a category");
                find("_FillValue", message);
            } else if fill < 0 && unsigned {
                find("_FillValue", format!("{fill} is not a {}", kind.name()));
            }
        }
        let first = dictionary.categories.first().map(JsonKind::of);
        for word in &dictionary.categories {
            let kind = JsonKind::of(word);
            let is_word = matches!(kind, JsonKind::Text | JsonKind::Number | JsonKind::Bool);
            if !is_word || Some(kind) != first {
                find("categories", format!("{kind} as a category"));
            }
        }
        let mut seen = BTreeSet::new();
        let words = dictionary.categories.iter().map(Value::to_string);
        for word in words.filter(|word| !seen.insert(word.clone())) {
            find("categories", format!("{word} is a duplicate"));
        }
    }
}
