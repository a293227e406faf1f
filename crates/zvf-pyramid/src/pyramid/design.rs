//! The design of a level.

use std::collections::BTreeMap;

use zvf_build::{
    ShardingPolicy,
    coarsen::{Aggregation, Amount, CoarsenMethod, Sparsity, Strategy},
};
use zvf_dataset::Failure;
use zvf_format::numeric::Kind;

/// The design of a level of a pyramid.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelDesign {
    /// Method that reduces the vertices.
    pub method: CoarsenMethod,
    /// Number of chunks of the finer level that one chunk covers along each axis.
    pub chunk_scale: Vec<u32>,
    /// Objects to keep. Default: all.
    pub sparsity: Option<ObjectSelection>,
    /// True if the level is one of several that together hold each point once. All of them are
    /// built from level 0, and `chunk_scale` counts chunks of level 0.
    pub additive: bool,
    /// Number of cells in each shard. Default: that of the level it is built from.
    pub sharding: Option<ShardingPolicy>,
}

impl LevelDesign {
    /// Returns `chunk_scale` as factors of chunk coordinates.
    pub(super) fn scale(&self) -> Vec<i64> {
        self.chunk_scale.iter().copied().map(i64::from).collect()
    }

    /// Multiplies extents by `chunk_scale`.
    pub(super) fn scaled(&self, extents: &[f64]) -> impl Iterator<Item = f64> {
        let extents = extents.iter().zip(&self.chunk_scale);
        extents.map(|(extent, scale)| extent * f64::from(*scale))
    }
}

/// The objects that a level keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectSelection {
    /// Number of objects, and the strategy that selects them.
    pub sparsity: Sparsity,
    /// Object attribute that [`Strategy::Attribute`] ranks by.
    pub attribute: Option<String>,
}

impl ObjectSelection {
    /// Parses a choice of objects as given on the command line: `random`, `length`, `coverage`,
    /// `group`, `attribute:NAME`, `attribute:NAME:greatest` or `attribute:NAME:least`.
    ///
    /// `share` is the share of the objects to keep, and `seed` is used for random choices.
    /// Returns `None` for other text.
    ///
    /// ```
    /// use zvf::ObjectSelection;
    ///
    /// let longest = ObjectSelection::parse("attribute:length", 0, 0.5).ok_or("not a choice")?;
    /// assert_eq!(longest.attribute.as_deref(), Some("length"));
    /// assert_eq!(ObjectSelection::parse("longest", 0, 0.5), None);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn parse(choice: &str, seed: u64, share: f64) -> Option<Self> {
        let mut attribute = None;
        let strategy = match choice.split_once(':') {
            None => match choice {
                "random" => Strategy::Random { seed },
                "length" => Strategy::Length,
                "coverage" => Strategy::Coverage,
                "group" => Strategy::PerGroup { seed },
                _ => return None,
            },
            Some(("attribute", name)) => {
                let (name, descending) = match name.rsplit_once(':') {
                    Some((name, "least")) => (name, false),
                    Some((name, "greatest")) => (name, true),
                    _ => (name, true),
                };
                attribute = Some(name.to_owned());
                Strategy::Attribute { descending }
            }
            Some(_) => return None,
        };
        let amount = Amount::Share(share);
        Some(Self {
            sparsity: Sparsity { amount, strategy },
            attribute,
        })
    }
}

/// The aggregation of attributes.
pub(super) struct Coarsening {
    pub(super) rules: BTreeMap<String, Aggregation>,
    /// True if the values of the finer level were aggregated by the same rules.
    pub(super) is_again: bool,
}

impl Coarsening {
    /// Returns the aggregation of the values of an attribute.
    pub(super) fn rule(
        &self,
        name: &str,
        kind: Kind,
        columns: Option<usize>,
        is_coded: bool,
        keeps: bool,
    ) -> Result<Aggregation, Failure> {
        let rule = self.rules.get(name).copied().unwrap_or_else(|| {
            Aggregation::default_for(kind, columns.unwrap_or(1), is_coded, keeps)
        });
        if is_coded && !rule.suits_codes() {
            return Err(Failure::NoPyramid {
                why: "the values of an attribute are words, which have no mean, sum, minimum or \
                      maximum: use own, mode or count",
            });
        }
        Ok(if self.is_again { rule.again() } else { rule })
    }
}
