//! Placement of links in a store of generation 0.9, assembled from the codecs.
//!
//! `zvf_format::links` and `zvf_format::path` contain the rules of the format; this module selects
//! the applicable ones, for the recorded and the live comparisons with the reference.

use serde_json::{Value, json};
use zvf_format::{
    links::{AxisScales, LinkWidth, Permutation, RowForm, duplicates},
    path::{OffsetCoords, Offsets},
};

/// The ends of a link as given: the chunk and the vertex row in it.
pub type Record = Vec<(Vec<i64>, u64)>;

/// Properties of a link family.
#[derive(Clone, Debug)]
pub struct FilingRules {
    /// Levels between the source and the other ends.
    pub delta: i64,
    /// Number of ends.
    pub width: LinkWidth,
    /// The levels' chunk shapes, one for each axis.
    pub scales: Vec<AxisScales>,
    directed: bool,
    duplicate: bool,
}

/// One stored copy of a record.
#[derive(Clone, Debug)]
pub struct StoredCopy {
    /// The array's last path segment.
    pub segment: String,
    /// The chunk whose cell holds the copy.
    pub source: Vec<i64>,
    /// The permutation from the input order to the stored order.
    pub order: Permutation,
    /// The vertex rows in stored order.
    pub vertices: Vec<u64>,
}

impl FilingRules {
    /// Creates the rules of links within a level whose chunk keys have this many numbers.
    pub fn of_level(width: LinkWidth, arity: usize, directed: bool, duplicate: bool) -> Self {
        Self {
            delta: 0,
            width,
            scales: vec![AxisScales::EQUAL; arity],
            directed,
            duplicate,
        }
    }

    /// Reads the `input` of a case of `testdata/codec/link_placement.json`.
    ///
    /// # Panics
    ///
    /// Panics if it is malformed, or the number of ends of a record is not `width`.
    pub fn from_json(input: &Value, width: usize) -> Self {
        let scale = |side: &str| {
            let scales = input[side].as_array().expect("scales").iter();
            let scale = |scale: &Value| u32::try_from(scale.as_u64()?).ok()?.try_into().ok();
            scales.map(move |value| scale(value).expect("a scale"))
        };
        let pairs = scale("scale_source").zip(scale("scale_target"));
        Self {
            delta: input["delta"].as_i64().expect("a delta"),
            width: LinkWidth::new(width as u64).expect("a width"),
            scales: pairs
                .map(|(source, target)| AxisScales { source, target })
                .collect(),
            directed: input["directed"].as_bool().expect("directed or not"),
            duplicate: input["store"] == "duplicate",
        }
    }

    /// Returns every copy of `record`, in the reference's order; `None` if an offset does not fit
    /// 64 bits.
    ///
    /// # Panics
    ///
    /// Panics if the number of ends of the record is not `width`.
    pub fn file(&self, record: &Record) -> Option<Vec<StoredCopy>> {
        let identity = Permutation::identity(self.width);
        let within = record.iter().all(|(chunk, _)| *chunk == record[0].0);
        let orders = if within || self.delta != 0 {
            vec![identity]
        } else if self.duplicate {
            duplicates(record).expect("a width").collect()
        } else if self.directed {
            vec![identity]
        } else {
            vec![Permutation::sorting(record).expect("a width")]
        };
        let filed = |order: Permutation| {
            let mut ends = order.slots().iter().map(|&at| &record[usize::from(at)]);
            let (source, first) = ends.next()?;
            let (mut offsets, mut vertices) = (Vec::new(), vec![*first]);
            for (chunk, vertex) in ends {
                offsets.push(self.each_axis(source, chunk, AxisScales::offset)?);
                vertices.push(*vertex);
            }
            Some(StoredCopy {
                segment: OffsetCoords(&offsets).to_string(),
                source: source.clone(),
                order,
                vertices,
            })
        };
        orders.into_iter().map(filed).collect()
    }

    /// Returns whether the rows of this array are flat, without groups.
    pub fn is_flat(&self, offsets: &Offsets<'_>) -> bool {
        self.delta == 0 && offsets.is_zero()
    }

    /// Returns the form of the rows of this array.
    pub fn form(&self, offsets: &Offsets<'_>) -> RowForm {
        let one_order = self.delta != 0 || (self.directed && !self.duplicate);
        if offsets.is_zero() || one_order {
            RowForm::Plain
        } else {
            RowForm::Permuted
        }
    }

    /// Returns the record of a stored copy; `None` if a chunk does not fit 64 bits.
    pub fn record(
        &self,
        offsets: &Offsets<'_>,
        source: &[i64],
        order: Permutation,
        stored: &[u64],
    ) -> Option<Record> {
        let mut chunks = vec![source.to_vec()];
        for offset in offsets.iter() {
            let offset: Vec<i64> = offset.collect();
            chunks.push(self.each_axis(source, &offset, AxisScales::resolve)?);
        }
        let end = |at| {
            let slot = order.slot_of(at)?;
            Some((chunks.get(slot)?.clone(), *stored.get(slot)?))
        };
        (0..self.width.get()).map(end).collect()
    }

    fn each_axis(
        &self,
        source: &[i64],
        other: &[i64],
        of: fn(AxisScales, i64, i64) -> Option<i64>,
    ) -> Option<Vec<i64>> {
        let axes = self.scales.iter().zip(source).zip(other);
        axes.map(|((scales, source), other)| of(*scales, *source, *other))
            .collect()
    }
}

/// Reads a `record`: `[{"chunk": […], "vertex": row}, …]`.
///
/// # Panics
///
/// Panics if it is malformed.
pub fn record_from_json(record: &Value) -> Record {
    let end = |end: &Value| {
        let chunk = end["chunk"]
            .as_array()
            .expect("a chunk")
            .iter()
            .map(|number| number.as_i64().expect("a number"));
        (chunk.collect(), end["vertex"].as_u64().expect("a row"))
    };
    let ends = record.as_array().expect("a record").iter();
    ends.map(end).collect()
}

/// Writes a `record` in the form of [`record_from_json`].
pub fn record_to_json(record: &Record) -> Value {
    let end = |(chunk, vertex): &(Vec<i64>, u64)| json!({ "chunk": chunk, "vertex": vertex });
    record.iter().map(end).collect()
}
