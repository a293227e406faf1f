//! What store to make.

/// What a store is to hold and how; all that is not said here follows from the
/// seed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Recipe {
    /// Of the random numbers.
    pub seed: u64,
    /// What it holds.
    pub kind: StoreKind,
    /// The generation and form of it.
    pub profile: RecipeProfile,
    /// Axes in space, 1 to 5.
    pub axes: usize,
    /// About how many vertices.
    pub size: usize,
    /// Whether positions are float64 rather than float32.
    pub double: bool,
    /// How cells are encoded.
    pub cells: Cells,
    /// How links are stored.
    pub policy: RecordPolicy,
    /// Whether chunks have a leading axis of the values of an attribute.
    pub chunked: bool,
    /// Whether rows are in any order, so that fragments are lists.
    pub shuffled: bool,
    /// Whether there are attributes and groups.
    pub attributes: bool,
}

/// What a store holds.
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
    /// Every kind there is.
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

    /// Whether vertices stand alone.
    pub fn is_points(self) -> bool {
        matches!(self, Self::Points | Self::BinnedPoints | Self::ObjectPoints)
    }

    /// Whether objects are paths.
    pub fn is_paths(self) -> bool {
        matches!(self, Self::Lines | Self::Polylines)
    }

    /// Whether vertices are linked.
    pub fn is_linked(self) -> bool {
        !self.is_points() && !self.is_paths()
    }

    /// Whether fragments imply links from child to parent.
    pub fn is_skeleton(self) -> bool {
        matches!(self, Self::Skeleton | Self::StreamedSkeleton)
    }

    /// Ends of a link.
    pub fn width(self) -> usize {
        match self {
            Self::Triangles => 3,
            Self::Quads => 4,
            _ => 2,
        }
    }

    /// As the root's `geometry_types` has it.
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

    /// As the root's `links_convention` has it.
    pub fn convention(self) -> &'static str {
        match self {
            _ if !self.is_linked() => "implicit_sequential",
            _ if self.is_skeleton() => "implicit_sequential_with_branches",
            _ => "explicit",
        }
    }
}

/// A generation of the format, and which form of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum RecipeProfile {
    V06,
    V07,
    V080,
    Padded,
    V081,
    V09,
}

impl RecipeProfile {
    /// Every profile there is.
    pub const ALL: [Self; 6] = [
        Self::V06,
        Self::V07,
        Self::V080,
        Self::Padded,
        Self::V081,
        Self::V09,
    ];

    /// As it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::V06 => "0.6",
            Self::V07 => "0.7",
            Self::V080 => "0.8",
            Self::Padded => "0.8-padded",
            Self::V081 => "0.8.1",
            Self::V09 => "0.9",
        }
    }

    /// What its stores declare.
    pub(super) fn version(self) -> &'static str {
        match self {
            Self::V06 => "0.6.0",
            Self::V07 => "0.7.0",
            Self::V080 | Self::Padded => "0.8.0",
            Self::V081 => "0.8.1",
            Self::V09 => "0.9.2",
        }
    }
}

/// How cells are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Cells {
    Plain,
    Zstd,
    Gzip,
    /// Compressed, and several to a file; up to 0.8.0 in the shards of that time.
    Sharded,
}

impl Cells {
    /// Every way there is.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Zstd, Self::Gzip, Self::Sharded];
}

/// How links of graphs and meshes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum RecordPolicy {
    Canonical,
    Directed,
    Duplicate,
}

impl RecordPolicy {
    /// Every policy there is.
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
    /// The nearest recipe that a store can be made of: not every generation
    /// and kind has everything.
    #[must_use]
    pub fn possible(mut self) -> Self {
        let current = self.profile == RecipeProfile::V09;
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
