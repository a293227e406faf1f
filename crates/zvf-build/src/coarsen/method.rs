//! Methods of coarsening.

use serde_json::{Value, json};

use super::{Topology, VertexBlock, VertexMerge, bins, bins::Placement, collapse, lines, subset};

/// Method that reduces the vertices of a chunk.
#[derive(Clone, Debug, PartialEq)]
pub enum CoarsenMethod {
    /// Merges all vertices of an object in a cell; with `share`, and for paths, those of all
    /// objects. In trees only connected vertices merge, so that trees remain trees. Axes beyond the
    /// length of `cell` are not divided.
    Bins {
        /// Extent of a cell, which divides chunks evenly.
        cell: Vec<f64>,
        /// Position of the merged vertex.
        placement: Placement,
        /// `true` if objects share merged vertices.
        share: bool,
    },
    /// Keeps, for each object and cell, the points with the smallest hashes of seed and position; at
    /// least one. Points that objects share are sampled together. Subsets with equal seeds are
    /// nested. Dropped points map to the nearest kept point of their cell and owner.
    Subset {
        /// Extent of a cell.
        cell: Vec<f64>,
        /// Number of points kept in a cell.
        keep: u32,
        /// Seed of the hashes.
        seed: u64,
        /// Excludes points that are kept in cells of this extent: for levels that hold each point
        /// once, the next level has them. These cells divide chunks evenly too.
        without: Option<Vec<f64>>,
    },
    /// Keeps the vertices needed so that paths and limbs stay within the tolerance of the old ones
    /// (Douglas-Peucker). Roots, branch points, ends, and vertices where paths meet or part are
    /// kept, and at least one vertex of a ring.
    Simplify {
        /// Maximum distance.
        tolerance: f64,
    },
    /// Keeps every `step`-th vertex of a path or limb, and its ends.
    Stride {
        /// Distance between kept vertices, in vertices.
        step: u32,
    },
    /// Collapses mesh edges in the order of quadric error and keeps boundaries.
    Collapse {
        /// Fraction of vertices kept.
        keep: f64,
        /// Maximum distance that the surface moves; `f64::INFINITY` removes the limit.
        tolerance: f64,
        /// Connected pieces with fewer faces that lie within the chunk are dropped; 0 keeps all.
        /// Vertices without a face are always dropped.
        cull: u32,
    },
}

/// Declares the methods: a name on the command line, the rest of a sentence that starts with the name,
/// and the parameter that grows from level to level.
macro_rules! methods {
    ($( $(#[$doc:meta])* $kind:ident: $name:literal, $description:literal, $scale:expr; )+) => {
        /// A method without its parameters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum MethodKind {
            $( $(#[$doc])* $kind, )+
        }

        impl MethodKind {
            /// All methods.
            pub const ALL: [Self; [$( $name ),+].len()] = [$( Self::$kind ),+];

            /// Returns the name of the method on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $( Self::$kind => $name, )+
                }
            }

            /// Returns what the method does, to follow its name in a list.
            pub fn description(self) -> &'static str {
                match self {
                    $( Self::$kind => $description, )+
                }
            }

            /// Returns the parameter that grows from level to level.
            #[doc(hidden)]
            pub fn scale(self) -> MethodScale {
                match self {
                    $( Self::$kind => $scale, )+
                }
            }
        }
    };
}

methods! {
    /// Merges the vertices of a cell into one.
    Bins: "bins", "keeps one vertex per grid cell", MethodScale::Cell { merged: true };
    /// Keeps some of the points in a cell.
    Subset: "subset", "some points of each cell", MethodScale::Cell { merged: false };
    /// Drops vertices of a line as long as it moves by no more than a tolerance.
    Simplify: "simplify", "the vertices that the shape of lines needs", MethodScale::Tolerance;
    /// Keeps every n-th vertex of a line.
    Stride: "stride", "every n-th vertex of a line", MethodScale::Step;
    /// Collapses edges of a mesh.
    Collapse: "collapse", "collapses the edges of a mesh that change its shape least",
        MethodScale::Ratio;
}

/// The parameter that grows from level to level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodScale {
    /// The extent of cells.
    Cell {
        /// `true` if the vertices of a cell become one; `false` if some of its points are kept as they
        /// are.
        merged: bool,
    },
    /// The tolerance of lines.
    Tolerance,
    /// The distance between kept vertices, in vertices.
    Step,
    /// The number of vertices for each vertex that is kept.
    Ratio,
}

/// Parameters of all methods.
#[derive(Clone, Debug)]
pub struct MethodOptions {
    /// Extent of a cell.
    pub cell: Vec<f64>,
    /// Position of a merged vertex.
    pub placement: Placement,
    /// `true` if objects share merged vertices.
    pub share: bool,
    /// Number of points kept in a cell.
    pub keep: u32,
    /// Seed of random choices.
    pub seed: u64,
    /// Maximum distance that lines or surfaces move; `f64::INFINITY` removes the limit.
    pub tolerance: f64,
    /// Distance between kept vertices, in vertices.
    pub step: u32,
    /// Number of vertices for each vertex that is kept.
    pub ratio: f64,
    /// Pieces of meshes with fewer faces are dropped.
    pub cull: u32,
}

/// The cause of the error of a level without faces that is to be collapsed.
const NO_FACES: &str = "there are no faces to collapse; use --method bins";

/// The cause of the error of levels without points.
pub const NO_POINTS: &str = "each of its cells must keep at least 1 point";

/// The cause of the error of a tolerance that is no distance.
pub const NO_TOLERANCE: &str =
    "its tolerance must be a distance of at least 0, and finite for lines";

impl MethodKind {
    /// Returns the name in the metadata of a level.
    #[doc(hidden)]
    pub fn in_metadata(self) -> &'static str {
        match self {
            // The name in the reference implementation.
            Self::Bins => "per_object",
            Self::Subset | Self::Simplify | Self::Stride | Self::Collapse => self.name(),
        }
    }

    /// Returns the reason why the method would leave geometry of a topology unchanged; `None` if it
    /// reduces it. Faces have no lines to simplify, and points on links or paths cannot be sampled
    /// independently.
    #[doc(hidden)]
    pub fn refusal(self, topology: Topology) -> Option<&'static str> {
        match (self, topology) {
            (Self::Bins, _)
            | (Self::Subset, Topology::Points | Topology::SharedPoints)
            | (
                Self::Simplify | Self::Stride,
                Topology::Paths | Topology::Trees | Topology::Graphs,
            )
            | (Self::Collapse, Topology::Faces) => None,
            (Self::Subset, _) => {
                Some("only points can be sampled; omit --method to use the default of the geometry")
            }
            (Self::Simplify | Self::Stride, Topology::Faces) => Some(
                "faces have no lines to simplify; omit --method to use the default of the geometry",
            ),
            (Self::Simplify | Self::Stride, _) => {
                Some("points have no lines to simplify; use --method subset or bins")
            }
            (Self::Collapse, _) => Some(NO_FACES),
        }
    }

    /// Returns the reason why the method cannot follow links of `width` ends.
    #[doc(hidden)]
    pub fn refused_links(self, width: Option<usize>) -> Option<&'static str> {
        match (self, width) {
            (Self::Collapse, None) => Some(NO_FACES),
            (Self::Collapse, Some(width)) if width != 3 => Some(
                "only triangles can be collapsed; use --method bins for faces with more vertices",
            ),
            (Self::Bins | Self::Subset | Self::Simplify | Self::Stride | Self::Collapse, _) => None,
        }
    }

    /// Returns whether the method keeps some of the points of a cell as they are.
    pub fn samples_points(self) -> bool {
        self.scale() == MethodScale::Cell { merged: false }
    }

    /// Returns the method with those of the options that it has.
    #[doc(hidden)]
    pub fn with(self, options: MethodOptions) -> CoarsenMethod {
        match self {
            Self::Bins => CoarsenMethod::Bins {
                cell: options.cell,
                placement: options.placement,
                share: options.share,
            },
            Self::Subset => CoarsenMethod::Subset {
                cell: options.cell,
                keep: options.keep,
                seed: options.seed,
                without: None,
            },
            Self::Simplify => CoarsenMethod::Simplify {
                tolerance: options.tolerance,
            },
            Self::Stride => CoarsenMethod::Stride { step: options.step },
            Self::Collapse => CoarsenMethod::Collapse {
                keep: 1.0 / options.ratio.max(1.0),
                tolerance: options.tolerance,
                cull: options.cull,
            },
        }
    }
}

impl CoarsenMethod {
    /// Returns the method without its parameters.
    pub fn kind(&self) -> MethodKind {
        match self {
            Self::Bins { .. } => MethodKind::Bins,
            Self::Subset { .. } => MethodKind::Subset,
            Self::Simplify { .. } => MethodKind::Simplify,
            Self::Stride { .. } => MethodKind::Stride,
            Self::Collapse { .. } => MethodKind::Collapse,
        }
    }

    /// Returns the reason why no level can have these parameters.
    #[doc(hidden)]
    pub fn invalidity(&self) -> Option<&'static str> {
        match self {
            // Refreshing needs the recorded tolerance, which cannot be infinite.
            Self::Simplify { tolerance } if !(tolerance.is_finite() && *tolerance >= 0.0) => {
                Some(NO_TOLERANCE)
            }
            Self::Collapse { tolerance, .. } if tolerance.is_nan() || *tolerance < 0.0 => {
                Some(NO_TOLERANCE)
            }
            Self::Subset { keep: 0, .. } => Some(NO_POINTS),
            Self::Bins { .. }
            | Self::Subset { .. }
            | Self::Simplify { .. }
            | Self::Stride { .. }
            | Self::Collapse { .. } => None,
        }
    }

    /// Maps the vertices of a block. A block whose topology the method cannot reduce keeps its
    /// vertices, as [`VertexMerge::unchanged`] does.
    pub fn merge(&self, block: &VertexBlock) -> VertexMerge {
        if self.kind().refusal(block.topology).is_some() {
            return VertexMerge::unchanged(block);
        }
        match self {
            Self::Bins {
                cell,
                placement,
                share,
            } => bins::merge(block, cell, *placement, *share),
            Self::Subset {
                cell,
                keep,
                seed,
                without: None,
            } => subset::merge(block, cell, *keep, *seed),
            Self::Subset {
                cell,
                keep,
                seed,
                without: Some(next),
            } => subset::merge_without(block, cell, next, *keep, *seed),
            Self::Simplify { tolerance } => lines::simplify(block, *tolerance),
            Self::Stride { step } => lines::decimate(block, *step),
            Self::Collapse {
                keep,
                tolerance,
                cull,
            } => collapse::merge(block, *keep, *tolerance, *cull),
        }
    }

    /// Returns the extent of cells, if the method has cells.
    pub fn cell(&self) -> Option<&[f64]> {
        match self {
            Self::Bins { cell, .. } | Self::Subset { cell, .. } => Some(cell),
            Self::Simplify { .. } | Self::Stride { .. } | Self::Collapse { .. } => None,
        }
    }

    /// Returns all cell extents that must divide chunks evenly.
    pub fn cells(&self) -> impl Iterator<Item = &[f64]> {
        let next = match self {
            Self::Subset { without, .. } => without.as_deref(),
            Self::Bins { .. }
            | Self::Simplify { .. }
            | Self::Stride { .. }
            | Self::Collapse { .. } => None,
        };
        self.cell().into_iter().chain(next)
    }

    /// Returns the tolerance of lines, if the method has one.
    pub fn tolerance(&self) -> Option<f64> {
        match self {
            Self::Simplify { tolerance } => Some(*tolerance),
            Self::Bins { .. }
            | Self::Subset { .. }
            | Self::Stride { .. }
            | Self::Collapse { .. } => None,
        }
    }

    /// Returns whether objects may come to share vertices.
    #[doc(hidden)]
    pub fn shares(&self) -> bool {
        match self {
            Self::Bins { share, .. } => *share,
            Self::Subset { .. }
            | Self::Simplify { .. }
            | Self::Stride { .. }
            | Self::Collapse { .. } => false,
        }
    }

    /// Returns the method without sharing of vertices between objects.
    #[must_use]
    #[doc(hidden)]
    pub fn without_sharing(&self) -> Self {
        let mut method = self.clone();
        if let Self::Bins { share, .. } = &mut method {
            *share = false;
        }
        method
    }

    /// Returns whether coarser vertices are a subset of the finer ones.
    #[doc(hidden)]
    pub fn keeps_vertices(&self) -> bool {
        match self {
            Self::Bins { placement, .. } => *placement == Placement::Medoid,
            Self::Subset { .. } | Self::Simplify { .. } | Self::Stride { .. } => true,
            Self::Collapse { .. } => false,
        }
    }

    /// Returns whether the method needs to know which vertices have links that leave the chunk.
    #[doc(hidden)]
    pub fn needs_ties(&self) -> bool {
        match self {
            Self::Simplify { .. } | Self::Stride { .. } | Self::Collapse { .. } => true,
            Self::Bins { .. } | Self::Subset { .. } => false,
        }
    }

    /// Returns the method and its parameters as members of the recipe of a level.
    #[doc(hidden)]
    pub fn record(&self) -> Value {
        let mut record = json!({"method": self.kind().in_metadata()});
        match self {
            Self::Bins {
                cell,
                placement,
                share,
            } => {
                record["cell"] = json!(cell);
                record["placing"] = json!(format!("{placement:?}").to_lowercase());
                record["share"] = json!(share);
            }
            Self::Subset {
                cell,
                keep,
                seed,
                without,
            } => {
                if let Some(without) = without {
                    record["without"] = json!(without);
                }
                record["cell"] = json!(cell);
                record["keep"] = json!(keep);
                record["seed"] = json!(seed);
            }
            Self::Simplify { tolerance } => record["tolerance"] = json!(tolerance),
            Self::Stride { step } => record["step"] = json!(step),
            Self::Collapse {
                keep,
                tolerance,
                cull,
            } => {
                record["keep"] = json!(keep);
                if tolerance.is_finite() {
                    record["tolerance"] = json!(tolerance);
                }
                record["cull"] = json!(cull);
            }
        }
        record
    }

    /// Parses the [record](Self::record) of a method; `None` if it is not understood.
    #[doc(hidden)]
    pub fn of_record(record: &Value) -> Option<Self> {
        let number = |name: &str| record.get(name).and_then(Value::as_f64);
        let count = |name: &str| record.get(name).and_then(Value::as_u64);
        let small = |name: &str| count(name).and_then(|count| u32::try_from(count).ok());
        let extents = |name: &str| {
            let cell = record.get(name)?.as_array()?;
            cell.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>()
        };
        let name = record.get("method")?.as_str()?;
        let mut kinds = MethodKind::ALL.into_iter();
        Some(match kinds.find(|kind| kind.in_metadata() == name)? {
            MethodKind::Bins => Self::Bins {
                cell: extents("cell")?,
                placement: match record.get("placing")?.as_str()? {
                    "medoid" => Placement::Medoid,
                    _ => Placement::Mean,
                },
                share: record.get("share").and_then(Value::as_bool) == Some(true),
            },
            MethodKind::Subset => Self::Subset {
                cell: extents("cell")?,
                keep: small("keep")?,
                seed: count("seed")?,
                without: extents("without"),
            },
            MethodKind::Simplify => Self::Simplify {
                tolerance: number("tolerance")?,
            },
            MethodKind::Stride => Self::Stride {
                step: small("step")?,
            },
            MethodKind::Collapse => Self::Collapse {
                keep: number("keep")?,
                tolerance: number("tolerance").unwrap_or(f64::INFINITY),
                cull: small("cull")?,
            },
        })
    }
}
