//! L2: what nodes say.

use crate::rule::rules;

rules! { Metadata;
    /// An error of L1 leaves nothing that metadata could be checked against.
    NOT_RUN = "ZV-L2-000", Error, "metadata were not checked",
        Advice("mend what L1 found, and validate again");
    /// The root says too little, or contradicts itself, to read anything below it.
    ROOT_UNUSABLE = "ZV-L2-001", Error, "the root's metadata cannot be used",
        Advice("correct the field, which the specification describes");
    /// A level's metadata cannot be used.
    LEVEL_UNUSABLE = "ZV-L2-002", Error, "a level's metadata cannot be used",
        Advice("correct the field, which the specification describes");
    /// The shape or origin of an array with an element for each chunk makes no grid of chunks.
    GRID = "ZV-L2-003", Error, "an array is no grid of chunks",
        Advice("correct shape and chunk_grid_origin");
}
