//! Properties of segments: labels, numbers and tags, in one document.

use serde_json::{Map, Value, json};

use crate::{InfoError, info_node::InfoNode};

const TYPE: &str = "neuroglancer_segment_properties";
const NUMBERS: [&str; 7] = [
    "float32", "int8", "uint8", "int16", "uint16", "int32", "uint32",
];

/// Properties of segments. A document without segments makes the viewer hang: write none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SegmentProperties {
    /// Ids of the segments.
    pub ids: Vec<u64>,
    /// The properties, each with a value for each id.
    pub properties: Vec<SegmentProperty>,
}

/// A property of segments.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentProperty {
    /// Identifier.
    pub id: String,
    /// Text that the viewer shows.
    pub description: Option<String>,
    /// The values.
    pub values: SegmentPropertyValues,
}

/// Values of a property.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SegmentPropertyValues {
    /// Names of the segments; one property at most.
    Label(Vec<String>),
    /// Descriptions of the segments; one property at most.
    Description(Vec<String>),
    /// Texts.
    Text(Vec<String>),
    /// Numbers.
    Number {
        /// The type of the numbers, `float32` or an integer type of at most 32 bits.
        data_type: String,
        /// The numbers. Those of the type `float32` are written as the nearest finite float.
        values: Vec<f64>,
    },
    /// Tags, as ascending positions in a list; one property at most.
    Tags {
        /// The tags, without spaces.
        tags: Vec<String>,
        /// A description for each tag.
        descriptions: Vec<String>,
        /// The tags of each segment.
        values: Vec<Vec<u32>>,
    },
}

impl SegmentPropertyValues {
    fn len(&self) -> usize {
        match self {
            Self::Label(values) | Self::Description(values) | Self::Text(values) => values.len(),
            Self::Number { values, .. } => values.len(),
            Self::Tags { values, .. } => values.len(),
        }
    }

    fn to_json(&self) -> Map<String, Value> {
        let value = match self {
            Self::Label(values) => json!({"type": "label", "values": values}),
            Self::Description(values) => json!({"type": "description", "values": values}),
            Self::Text(values) => json!({"type": "string", "values": values}),
            Self::Number { data_type, values } => {
                let is_float = data_type == "float32";
                let values: Vec<Value> = values
                    .iter()
                    .map(|value| number(*value, is_float))
                    .collect();
                json!({"type": "number", "data_type": data_type, "values": values})
            }
            Self::Tags {
                tags,
                descriptions,
                values,
            } => json!({
                "type": "tags",
                "tags": tags,
                "tag_descriptions": descriptions,
                "values": values,
            }),
        };
        match value {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}

/// Writes integers without a fraction.
#[expect(
    clippy::cast_possible_truncation,
    reason = "integers have at most 32 bits"
)]
fn number(value: f64, is_float: bool) -> Value {
    if is_float {
        // JSON has no infinity.
        let float = (value as f32).clamp(f32::MIN, f32::MAX);
        // The shortest text that gives the float back.
        let shortest: Option<f64> = float.to_string().parse().ok();
        Value::from(shortest.unwrap_or(value))
    } else {
        Value::from(value as i64)
    }
}

impl SegmentProperties {
    /// Returns the document, or `None` if there are no segments.
    pub fn to_json(&self) -> Option<String> {
        if self.ids.is_empty() {
            return None;
        }
        let properties: Vec<Value> = self
            .properties
            .iter()
            .map(|property| {
                let mut members = property.values.to_json();
                members.insert("id".to_owned(), property.id.as_str().into());
                if let Some(text) = &property.description {
                    members.insert("description".to_owned(), text.as_str().into());
                }
                Value::Object(members)
            })
            .collect();
        let ids: Vec<String> = self.ids.iter().map(ToString::to_string).collect();
        let inline = json!({"ids": ids, "properties": properties});
        Some(json!({"@type": TYPE, "inline": inline}).to_string())
    }

    /// Reads the document.
    ///
    /// # Errors
    ///
    /// [`InfoError`] if it is not JSON or not properties of segments, or if a property does not
    /// have a value for each id.
    pub fn parse(json: &[u8]) -> Result<Self, InfoError> {
        let value = serde_json::from_slice(json)?;
        let inline = InfoNode::document(&value, TYPE)?.need("inline", "an object")?;
        let ids: Vec<u64> = inline
            .need("ids", "a list of ids")?
            .items()?
            .into_iter()
            .map(|node| {
                let id = node.text()?.parse();
                id.map_err(|_| node.fault("", "the text of a 64-bit number"))
            })
            .collect::<Result<_, _>>()?;
        let mut properties = Vec::new();
        for node in inline.need("properties", "a list of properties")?.items()? {
            let values = values(&node)?;
            if values.len() != ids.len() {
                return Err(node.fault("values", "a list with a value for each id"));
            }
            properties.push(SegmentProperty {
                id: node.need("id", "an identifier")?.text()?.to_owned(),
                description: node.optional_text("description")?,
                values,
            });
        }
        Ok(Self { ids, properties })
    }
}

fn values(node: &InfoNode<'_>) -> Result<SegmentPropertyValues, InfoError> {
    let list = node.need("values", "a list of values")?;
    let texts = |list: &InfoNode<'_>| -> Result<Vec<String>, InfoError> {
        let texts = list.items()?;
        texts
            .iter()
            .map(|text| text.text().map(str::to_owned))
            .collect()
    };
    Ok(match node.need("type", "the type of a property")?.text()? {
        "label" => SegmentPropertyValues::Label(texts(&list)?),
        "description" => SegmentPropertyValues::Description(texts(&list)?),
        "string" => SegmentPropertyValues::Text(texts(&list)?),
        "number" => {
            let data_type = node.need("data_type", "a type of numbers")?.text()?;
            if !NUMBERS.contains(&data_type) {
                return Err(node.fault("data_type", "float32 or an integer type of 32 bits"));
            }
            SegmentPropertyValues::Number {
                data_type: data_type.to_owned(),
                values: list.numbers()?,
            }
        }
        "tags" => {
            let tags = texts(&node.need("tags", "a list of tags")?)?;
            let descriptions = node
                .get("tag_descriptions")
                .map(|list| texts(&list))
                .transpose()?;
            let rows = list.items()?.into_iter().map(|row| {
                let tags = row.items()?.into_iter().map(|item| {
                    let tag = u32::try_from(item.unsigned()?).ok();
                    let tag =
                        tag.filter(|tag| usize::try_from(*tag).is_ok_and(|tag| tag < tags.len()));
                    tag.ok_or_else(|| item.fault("", "the position of a tag"))
                });
                tags.collect::<Result<Vec<u32>, _>>()
            });
            let values = rows.collect::<Result<_, _>>()?;
            SegmentPropertyValues::Tags {
                descriptions: descriptions.unwrap_or_else(|| vec![String::new(); tags.len()]),
                tags,
                values,
            }
        }
        _ => return Err(node.fault("type", "the type of a property")),
    })
}
