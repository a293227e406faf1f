//! Recipes of generated stores.

/// Content and form of a generated store; everything else follows from the seed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Recipe {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Kind of geometry.
    pub kind: StoreKind,
    /// Generation and form.
    pub profile: RecipeProfile,
    /// Axes in space, 1 to 5.
    pub axes: usize,
    /// Approximate number of vertices.
    pub size: usize,
    /// `true` if positions are float64 rather than float32.
    pub double: bool,
    /// Encoding of cells.
    pub cells: Cells,
    /// Storage of links.
    pub policy: RecordPolicy,
    /// `true` if chunks have a leading axis of the values of an attribute.
    pub chunked: bool,
    /// `true` if rows are in any order, so that fragments are lists.
    pub shuffled: bool,
    /// `true` if the store has attributes and groups.
    pub attributes: bool,
}

/// Kind of a generated store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum StoreKind {
    Points,
    BinnedPoints,
    ObjectPoints,
    Lines,
    Polylines,
    Graph,
    Skeleton,
    StreamedSkeleton,
    Triangles,
    Quads,
}

impl StoreKind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::Points,
        Self::BinnedPoints,
        Self::ObjectPoints,
        Self::Lines,
        Self::Polylines,
        Self::Graph,
        Self::Skeleton,
        Self::StreamedSkeleton,
        Self::Triangles,
        Self::Quads,
    ];

    /// Returns whether vertices are unconnected.
    pub fn is_points(self) -> bool {
        matches!(self, Self::Points | Self::BinnedPoints | Self::ObjectPoints)
    }

    /// Returns whether objects are paths.
    pub fn is_paths(self) -> bool {
        matches!(self, Self::Lines | Self::Polylines)
    }

    /// Returns whether vertices are linked.
    pub fn is_linked(self) -> bool {
        !self.is_points() && !self.is_paths()
    }

    /// Returns whether fragments imply links from child to parent.
    pub fn is_skeleton(self) -> bool {
        matches!(self, Self::Skeleton | Self::StreamedSkeleton)
    }

    /// Returns the number of ends of a link.
    pub fn width(self) -> usize {
        match self {
            Self::Triangles => 3,
            Self::Quads => 4,
            _ => 2,
        }
    }

    /// Returns the name in the root's `geometry_types`.
    pub fn geometry_type(self) -> &'static str {
        match self {
            Self::Points | Self::BinnedPoints | Self::ObjectPoints => "point_cloud",
            Self::Lines => "line",
            Self::Polylines => "streamline",
            Self::Graph => "graph",
            Self::Skeleton | Self::StreamedSkeleton => "skeleton",
            Self::Triangles | Self::Quads => "mesh",
        }
    }

    /// Returns the name in the root's `links_convention`.
    pub fn convention(self) -> &'static str {
        match self {
            _ if !self.is_linked() => "implicit_sequential",
            _ if self.is_skeleton() => "implicit_sequential_with_branches",
            _ => "explicit",
        }
    }
}

/// A generation of the format, and its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum RecipeProfile {
    V06,
    V07,
    V080,
    Padded,
    V081,
    V09,
    V10,
}

impl RecipeProfile {
    /// All profiles.
    pub const ALL: [Self; 7] = [
        Self::V06,
        Self::V07,
        Self::V080,
        Self::Padded,
        Self::V081,
        Self::V09,
        Self::V10,
    ];

    /// Returns whether cells and paths are those of 0.9.
    pub fn is_current(self) -> bool {
        self >= Self::V09
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::V06 => "0.6",
            Self::V07 => "0.7",
            Self::V080 => "0.8",
            Self::Padded => "0.8-padded",
            Self::V081 => "0.8.1",
            Self::V09 => "0.9",
            Self::V10 => "0.10",
        }
    }

    /// Returns the version that its stores declare.
    pub(super) fn version(self) -> &'static str {
        match self {
            Self::V06 => "0.6.0",
            Self::V07 => "0.7.0",
            Self::V080 | Self::Padded => "0.8.0",
            Self::V081 => "0.8.1",
            Self::V09 => "0.9.2",
            Self::V10 => "0.10.0",
        }
    }
}

/// Encoding of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Cells {
    Plain,
    Zstd,
    Gzip,
    /// Compressed, several per file; up to 0.8.0 in legacy shards.
    Sharded,
}

impl Cells {
    /// All encodings.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Zstd, Self::Gzip, Self::Sharded];
}

/// Storage of the links of graphs and meshes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum RecordPolicy {
    Canonical,
    Directed,
    Duplicate,
}

impl RecordPolicy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Canonical, Self::Directed, Self::Duplicate];
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            seed: 0,
            kind: StoreKind::Points,
            profile: RecipeProfile::V09,
            axes: 3,
            size: 60,
            double: false,
            cells: Cells::Plain,
            policy: RecordPolicy::Canonical,
            chunked: false,
            shuffled: false,
            attributes: true,
        }
    }
}

impl Recipe {
    /// Returns the nearest recipe that is possible, because not every generation and kind supports
    /// everything.
    #[must_use]
    pub fn possible(mut self) -> Self {
        let current = self.profile.is_current();
        self.axes = self.axes.clamp(1, 5);
        if self.kind == StoreKind::StreamedSkeleton && !current {
            self.kind = StoreKind::Skeleton;
        }
        let unsharded = [RecipeProfile::V081, RecipeProfile::Padded];
        if self.cells == Cells::Sharded && unsharded.contains(&self.profile) {
            self.cells = Cells::Zstd;
        }
        let policies = current || self.profile == RecipeProfile::V081;
        let free = matches!(
            self.kind,
            StoreKind::Graph | StoreKind::Triangles | StoreKind::Quads
        );
        if !policies || !free {
            self.policy = RecordPolicy::Canonical;
        }
        if self.kind == StoreKind::StreamedSkeleton {
            self.policy = RecordPolicy::Directed;
        }
        self.chunked &= self.profile != RecipeProfile::Padded
            && self.kind != StoreKind::BinnedPoints
            && !self.kind.is_skeleton();
        self
    }
}
