//! Which part of a store is meant: by place, object, group and attribute.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use zvf::{
    model::grid::ChunkCoord,
    query::{
        Query,
        geometry::{Bbox, Mode, Position, Sphere},
        predicate::Predicate,
    },
};

use super::values;

/// Which part of a store is meant.
#[derive(Clone, Debug, clap::Args)]
pub struct SelectionArgs {
    /// What comes into a box: the lower bound of each axis, then the upper ones.
    /// `inf` and `-inf` are bounds as well.
    #[arg(long, value_name = "x0,y0,z0,x1,y1,z1", group = "region", help_heading = "Place",
        value_parser = Bbox::parse, allow_hyphen_values = true)]
    bbox: Option<Bbox>,
    /// What comes into a sphere: its centre, then its radius.
    #[arg(long, value_name = "x,y,z,r", group = "region", help_heading = "Place",
        value_parser = values::sphere, allow_hyphen_values = true)]
    sphere: Option<Sphere>,
    /// What is nearest to a place.
    #[arg(long, value_name = "x,y,z", help_heading = "Place",
        value_parser = values::position, allow_hyphen_values = true)]
    nearest: Option<Position>,
    /// How many of the nearest.
    #[arg(long, value_name = "N", help_heading = "Place", requires = "nearest", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..))]
    k: u64,
    /// Whether things come whole when they touch, only the part inside, or only
    /// when entirely within.
    #[arg(long, help_heading = "Place", default_value = Mode::default().name(),
        value_parser = PossibleValuesParser::new(Mode::ALL.map(Mode::name))
            .map(|name| Mode::parse(&name).unwrap_or_default()))]
    mode: Mode,

    /// Objects by id, with commas between or one an option.
    #[arg(
        long = "object",
        value_name = "ID",
        help_heading = "What",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    objects: Vec<i64>,
    /// The objects of groups, by their numbers.
    #[arg(
        long = "group",
        value_name = "ID",
        help_heading = "What",
        value_delimiter = ','
    )]
    groups: Vec<u64>,
    /// Only what is in these chunks.
    #[arg(long = "chunk", value_name = "i.j.k", help_heading = "What", value_delimiter = ',',
        value_parser = values::chunk, allow_hyphen_values = true)]
    chunks: Vec<ChunkCoord>,
    /// What must hold of attributes, as "vertex.radius > 2 and kind = 'axon'".
    #[arg(long = "where", value_name = "EXPR", help_heading = "What",
        value_parser = Predicate::parse, allow_hyphen_values = true)]
    filter: Option<Predicate>,
}

impl SelectionArgs {
    /// Makes a query select that.
    ///
    /// # Errors
    ///
    /// [`QueryUsageError`] when options do not go together.
    pub fn select(&self, query: &mut Query) -> Result<(), QueryUsageError> {
        query.region = match (self.bbox, self.sphere) {
            (Some(bbox), _) => Some(bbox.into()),
            (None, sphere) => sphere.map(Into::into),
        };
        query.mode = self.mode;
        if let Some(place) = self.nearest {
            let k = usize::try_from(self.k).map_err(|_| QueryUsageError::Nearest)?;
            *query = query.clone().nearest(place, k);
        }
        query.objects = given(&self.objects);
        query.groups = given(&self.groups);
        query.chunks = given(&self.chunks);
        query.filter.clone_from(&self.filter);
        Ok(())
    }

    /// Whether what is in space has the axes of the store: with others it would
    /// select nothing, and not say why.
    ///
    /// # Errors
    ///
    /// [`QueryUsageError::Axes`] when it has others.
    pub fn check_axes(&self, axes: &[&str]) -> Result<(), QueryUsageError> {
        let places = [
            ("--bbox", self.bbox.as_ref().map(Bbox::axes)),
            ("--sphere", self.sphere.map(|sphere| sphere.centre().len())),
            ("--nearest", self.nearest.map(|place| place.len())),
        ];
        for (option, found) in places {
            if let Some(found) = found.filter(|found| *found != axes.len()) {
                let axes = axes.iter().map(|axis| (*axis).to_owned()).collect();
                return Err(QueryUsageError::Axes {
                    option,
                    found,
                    axes,
                });
            }
        }
        Ok(())
    }

    /// How places select.
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// The objects that are named.
    pub(crate) fn objects(&self) -> &[i64] {
        &self.objects
    }

    /// Whether objects are named, and nothing else is asked for.
    pub(crate) fn is_by_id(&self) -> bool {
        !self.objects.is_empty()
            && !self.is_by_place()
            && self.groups.is_empty()
            && self.filter.is_none()
    }

    /// Whether nothing is asked for, so that all would be meant.
    pub(crate) fn is_all(&self) -> bool {
        self.objects.is_empty()
            && !self.is_by_place()
            && self.groups.is_empty()
            && self.filter.is_none()
    }

    /// The box.
    pub(crate) fn bbox(&self) -> Option<&Bbox> {
        self.bbox.as_ref()
    }

    /// Whether there is a condition.
    pub(crate) fn is_filtered(&self) -> bool {
        self.filter.is_some()
    }

    /// Whether nothing can be in the box.
    pub(crate) fn is_in_empty_box(&self) -> bool {
        self.bbox.is_some_and(|bbox| bbox.is_empty())
    }

    fn is_by_place(&self) -> bool {
        let is_region = self.bbox.is_some() || self.sphere.is_some() || self.nearest.is_some();
        is_region || !self.chunks.is_empty()
    }
}

/// What an option gave, when it was there.
fn given<T: Clone>(values: &[T]) -> Option<Vec<T>> {
    (!values.is_empty()).then(|| values.to_vec())
}

/// Why arguments make no query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryUsageError {
    /// Cuts are of clipping.
    #[error("--drop-cut says what clipping does; add --mode clip")]
    DropCut,
    /// More are asked for than can be counted.
    #[error("--k is more than this machine can count")]
    Nearest,
    /// Something in space has another number of axes than the store.
    #[error("{option} has {found} axes, the store has {}: {}; give a value for each", axes.len(), axes.join(", "))]
    Axes {
        /// The option.
        option: &'static str,
        /// Axes it has.
        found: usize,
        /// Those of the store.
        axes: Vec<String>,
    },
}
