//! Selection of a part of a store: by region, object, group, chunk and attribute.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use zvf::{Bbox, Dataset, LevelId, Mode, NearestObject, Position, Predicate, Query, Scope, Sphere};
use zvf_model::grid::ChunkCoord;

use super::values;
#[cfg(feature = "render")]
use crate::display::{group_digits, len_u64};

/// Returns the number of a group; `None` for a name.
fn number(group: &str) -> Option<u64> {
    group.trim().parse().ok()
}

/// Returns the names of the axes of a store.
pub(crate) fn axis_names(dataset: &Dataset) -> Vec<&str> {
    let axes = dataset.root().axes.iter();
    axes.map(|axis| axis.name.as_str()).collect()
}

/// Arguments that select a part of a store.
#[derive(Clone, Debug, clap::Args)]
pub struct SelectionArgs {
    /// Select by a box: the lower bound of each axis, then the upper bounds.
    ///
    /// Bounds may be `inf` and `-inf`.
    #[arg(long, value_name = "X0,Y0,Z0,X1,Y1,Z1", group = "region", help_heading = "Region",
        value_parser = Bbox::parse, allow_hyphen_values = true)]
    bbox: Option<Bbox>,
    /// Select by a sphere: its centre, then its radius.
    #[arg(long, value_name = "X,Y,Z,R", group = "region", help_heading = "Region",
        value_parser = values::sphere, allow_hyphen_values = true)]
    sphere: Option<Sphere>,
    /// Select the points, paths or links nearest to a position, with their distances.
    #[arg(long, value_name = "X,Y,Z", help_heading = "Region",
        value_parser = values::position, allow_hyphen_values = true)]
    nearest: Option<Position>,
    /// Number of nearest items: of vertices for points, of paths for lines, polylines and
    /// streamlines, of links for skeletons, graphs and meshes.
    #[arg(long, value_name = "N", help_heading = "Region", requires = "nearest", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..))]
    k: u64,
    /// Select the objects nearest to the position, whole: --k of them, or one.
    #[arg(long, help_heading = "Region", requires = "nearest")]
    whole: bool,
    /// Treatment of items that cross the border of the region or that --where selects in part.
    ///
    /// Region: `touch`, the default, selects every item that enters it, whole; `clip` cuts items at
    /// the border; `within` selects items that lie inside. --where on vertices: `clip`, the default,
    /// selects the vertices for which it is true; `touch` every item with such a vertex, whole;
    /// `within` items whose vertices all satisfy it.
    #[arg(long, help_heading = "Region",
        value_parser = PossibleValuesParser::new(Mode::ALL.map(Mode::name))
            .map(|name| Mode::parse(&name).unwrap_or_default()))]
    mode: Option<Mode>,

    /// Select objects by id; repeat the option or separate ids by commas.
    #[arg(
        long = "object",
        value_name = "ID",
        help_heading = "Selection",
        value_delimiter = ',',
        value_parser = values::object,
        allow_hyphen_values = true
    )]
    objects: Vec<i64>,
    /// Select the objects of groups, by number or name; repeat the option or separate groups by commas.
    #[arg(
        long = "group",
        value_name = "GROUP",
        help_heading = "Selection",
        value_delimiter = ',',
        value_parser = values::group,
        allow_negative_numbers = true
    )]
    groups: Vec<String>,
    /// Select by chunk.
    #[arg(long = "chunk", value_name = "I.J.K", help_heading = "Selection", value_delimiter = ',',
        value_parser = values::chunk, allow_hyphen_values = true)]
    chunks: Vec<ChunkCoord>,
    /// Select only vertices, links and objects for which a predicate is true, such as
    /// "vertex.radius > 2 and kind = 'axon'".
    #[arg(long = "where", value_name = "EXPR", help_heading = "Selection",
        value_parser = Predicate::parse, allow_hyphen_values = true)]
    filter: Option<Predicate>,
}

impl SelectionArgs {
    /// Adds the selection to a query.
    ///
    /// # Errors
    ///
    /// Returns [`QueryUsageError`] if options contradict each other.
    pub fn select(&self, query: &mut Query) -> Result<(), QueryUsageError> {
        query.region = match (self.bbox, self.sphere) {
            (Some(bbox), _) => Some(bbox.into()),
            (None, sphere) => sphere.map(Into::into),
        };
        if let Some(mode) = self.mode {
            let is_region = self.bbox.is_some() || self.sphere.is_some();
            if !is_region && !self.filter.as_ref().is_some_and(concerns_vertices) {
                return Err(QueryUsageError::Mode(mode));
            }
            *query = query.clone().mode(mode);
        }
        if let Some(place) = self.nearest {
            let k = usize::try_from(self.k).map_err(|_| QueryUsageError::Nearest)?;
            *query = query.clone().nearest(place, k);
        }
        query.objects = given(&self.objects);
        query.groups = given(&self.group_numbers());
        query.chunks = given(&self.chunks);
        query.filter.clone_from(&self.filter);
        Ok(())
    }

    /// Adds what a query of a store selects by a search of the store: the groups of names, and the
    /// objects of `--whole`, which it returns.
    ///
    /// # Errors
    ///
    /// [`Error`](zvf::Error) if there is no group of a name, or the search fails.
    pub async fn search(
        &self,
        dataset: &Dataset,
        query: &mut Query,
    ) -> Result<Vec<NearestObject>, zvf::Error> {
        let named = self.groups.iter().filter(|group| number(group).is_none());
        let names: Vec<String> = named.map(|name| name.trim().to_owned()).collect();
        if !names.is_empty() {
            let numbers = dataset.groups_named(LevelId::FULL, &names).await?;
            query.groups.get_or_insert_default().extend(numbers);
        }
        if !self.whole {
            return Ok(Vec::new());
        }
        let found = dataset.nearest_objects(query).await?;
        // The rest of the selection restricts the search, not the parts of the objects.
        (query.nearest, query.region, query.groups) = (None, None, None);
        (query.chunks, query.filter) = (None, None);
        query.objects = Some(found.iter().map(|object| object.id).collect());
        Ok(found)
    }

    /// Returns the groups that are selected by number.
    fn group_numbers(&self) -> Vec<u64> {
        let groups = self.groups.iter();
        groups.filter_map(|group| number(group)).collect()
    }

    /// Checks that regions and positions have the axes of the store; with others they would
    /// silently select nothing.
    ///
    /// # Errors
    ///
    /// Returns [`QueryUsageError::Axes`] if the number of axes differs.
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

    /// Describes what is selected beside a region, such as `groups left, fa > 0.3`; `None` for everything.
    #[cfg(feature = "render")]
    pub(crate) fn describe(&self) -> Option<String> {
        let listed = |what: &str, names: Vec<String>| {
            const LISTED: usize = 5;
            match names.len() {
                0 => None,
                1..=LISTED => Some(format!("{what} {}", names.join(", "))),
                count => Some(format!("{} {what}s", group_digits(len_u64(count)))),
            }
        };
        let objects = self.objects.iter().map(i64::to_string).collect();
        let parts = [
            listed("object", objects),
            listed("group", self.groups.clone()),
            self.filter.as_ref().map(Predicate::to_string),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Returns the treatment of items that cross the border of the region.
    pub(crate) fn mode(&self) -> Mode {
        self.mode.unwrap_or_default()
    }

    /// Returns the selected object ids.
    pub(crate) fn objects(&self) -> &[i64] {
        &self.objects
    }

    /// Returns whether objects are selected by id and by nothing else.
    pub(crate) fn is_by_id(&self) -> bool {
        !self.objects.is_empty()
            && !self.is_by_place()
            && self.groups.is_empty()
            && self.filter.is_none()
    }

    /// Returns whether nothing is selected explicitly, so that everything is.
    pub(crate) fn is_all(&self) -> bool {
        self.objects.is_empty()
            && !self.is_by_place()
            && self.groups.is_empty()
            && self.filter.is_none()
    }

    /// Returns the box.
    pub(crate) fn bbox(&self) -> Option<&Bbox> {
        self.bbox.as_ref()
    }

    /// Returns whether there is a filter.
    pub(crate) fn is_filtered(&self) -> bool {
        self.filter.is_some()
    }

    /// Returns whether the box is empty.
    pub(crate) fn is_in_empty_box(&self) -> bool {
        self.bbox.is_some_and(|bbox| bbox.is_empty())
    }

    fn is_by_place(&self) -> bool {
        let is_region = self.bbox.is_some() || self.sphere.is_some() || self.nearest.is_some();
        is_region || !self.chunks.is_empty()
    }
}

/// Returns whether a predicate may be about vertices: a name without a scope may be one of theirs.
fn concerns_vertices(filter: &Predicate) -> bool {
    let other = [Scope::Link, Scope::Object, Scope::Group];
    let columns = filter.columns();
    let mut scopes = columns.iter().map(|column| column.scope);
    scopes.any(|scope| scope.is_none_or(|scope| !other.contains(&scope)))
}

/// Returns the values of an option, or `None` if it was not given.
fn given<T: Clone>(values: &[T]) -> Option<Vec<T>> {
    (!values.is_empty()).then(|| values.to_vec())
}

/// Returns the message of [`QueryUsageError::Axes`], with the form that the store needs.
fn axes_message(option: &str, found: usize, axes: &[String]) -> String {
    let of_axes = |suffix: &str| {
        let names = axes
            .iter()
            .map(|axis| format!("{}{suffix}", axis.to_uppercase()));
        names.collect::<Vec<_>>().join(",")
    };
    let form = match option {
        "--bbox" => format!("{},{}", of_axes("0"), of_axes("1")),
        "--sphere" => format!("{},R", of_axes("")),
        _ => of_axes(""),
    };
    let what = match option {
        "--bbox" => "a lower and an upper bound for each axis",
        "--sphere" => "a centre with each axis, and a radius",
        _ => "a value for each axis",
    };
    format!(
        "{option} has {found} axes, the store has {}: {}; give {what}, as {option} {form}",
        axes.len(),
        axes.join(", "),
    )
}

/// Arguments that form no query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryUsageError {
    /// `--drop-cut` without clipping.
    #[error("--drop-cut only affects clipping; add --mode clip")]
    DropCut,
    /// `--mode` without a region or a predicate.
    #[error(
        "--mode {} has no effect without a region; add --bbox or --sphere, or a --where about \
         vertices",
        .0.name()
    )]
    Mode(Mode),
    /// `--k` exceeds the address space.
    #[error("--k exceeds the address space of this machine; lower it")]
    Nearest,
    /// A region or position with a different number of axes than the store.
    #[error("{}", axes_message(option, *found, axes))]
    Axes {
        /// Option.
        option: &'static str,
        /// Its number of axes.
        found: usize,
        /// Axes of the store.
        axes: Vec<String>,
    },
}
