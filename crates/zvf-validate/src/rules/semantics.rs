//! L4: geometry.

use crate::rule::rules;

rules! { Semantics;
    /// Errors before leave nothing that geometry could be checked on.
    NOT_RUN = "ZV-L4-000", Error, "semantics were not checked",
        Advice("mend what L1 to L3 found, and validate again");
    /// The convention of links is none that the kind of geometry can have. Readers connect vertices by it.
    CONVENTION = "ZV-L4-001", Error, "a convention of links that the geometry cannot have",
        Advice("correct links_convention, or geometry_types");
    /// Points are not connected, and there are links between them.
    LINKED_POINTS = "ZV-L4-002", Warning, "points with links",
        Advice("correct geometry_types if this is a graph, or delete the links");
    /// Faces have three corners at least.
    NO_FACES = "ZV-L4-003", Error, "a mesh whose links are no faces",
        Advice("correct geometry_types if this is a graph");
    /// An object of lines has two vertices.
    LINE_ENDS = "ZV-L4-010", Error, "a line without two ends",
        Advice("correct geometry_types if these are polylines, or write the store again");
    /// Where a path goes from one chunk to another there is a link, and there are no others. Readers follow
    /// manifests, so that their answers are right; who follows the links is misled.
    STEPS = "ZV-L4-011", Warning, "links that are not the steps of paths between chunks",
        Advice("write the paths again, or their links; readers follow paths by their objects");
    /// The links between chunks name no vertices: writers of 0.6 and 0.7 store row 0, writers of lines the
    /// number of the fragment. Readers follow manifests and ignore these links.
    STEPS_UNKNOWN = "ZV-L4-012", Note, "links between chunks that name no vertices",
        Advice("rewrite the store with `zvf migrate`, which makes the links anew from manifests");
    /// Links give a vertex of a skeleton two parents. Readers take one of them.
    TWO_PARENTS = "ZV-L4-020", Error, "a vertex with two parents",
        Advice("remove the wrong link, or declare a graph");
    /// A vertex of a skeleton is its own ancestor.
    CYCLE = "ZV-L4-021", Error, "a skeleton that is no forest",
        Advice("remove the wrong link, or declare a graph");
    /// A vertex of a skeleton has a parent in another object.
    LIMBS = "ZV-L4-022", Error, "a parent in another object",
        Advice("remove the wrong link, or make one object of both");
    /// An object of a skeleton has several roots. Other writers refuse to store such an object.
    FOREST = "ZV-L4-023", Note, "an object of several trees",
        Advice("make an object of each tree, if other programs need it");
    /// An edge leads back to where it starts.
    LOOPS = "ZV-L4-030", Note, "an edge to itself",
        Advice("remove the edge, if it means nothing");
    /// A link is there several times.
    DOUBLES = "ZV-L4-031", Note, "a link that is there twice",
        Advice("remove one of them, if it means nothing");
    /// A link joins vertices of different objects. Up to 0.7 that is also what is left of graphs whose
    /// vertices were put in another order than their links.
    APART = "ZV-L4-032", Note, "a link between objects",
        Advice("make one object of both, if they are to be read together");
    /// A face has a corner twice.
    DEGENERATE = "ZV-L4-040", Warning, "a degenerate face",
        Advice("remove the face");
    /// Two faces go along their common edge in one direction, so that one of them shows its back.
    WINDING = "ZV-L4-041", Warning, "faces that are turned differently",
        Advice("turn the faces, if programs go by their direction");
    /// An edge belongs to more than two faces.
    NOT_MANIFOLD = "ZV-L4-042", Note, "an edge of more than two faces",
        Advice("remove faces, if programs need a manifold");
    /// A level has more vertices than the one before.
    MORE_VERTICES = "ZV-L4-051", Error, "a coarser level of more vertices",
        Advice("make the coarser level anew");
    /// Bins of a level are smaller than those of the one before.
    FINER_BINS = "ZV-L4-052", Error, "a coarser level of smaller bins",
        Advice("correct scale and translation of the level in multiscales");
    /// The share of objects that a level says it keeps is not the share that has vertices in it.
    SPARSITY = "ZV-L4-053", Warning, "a wrong object_sparsity",
        Advice("correct object_sparsity, or make the level anew");
    /// An object has vertices in a level, and none in the finer level that it was made from.
    NEW_OBJECTS = "ZV-L4-056", Warning, "an object that only a coarser level has",
        Advice("make the level anew");
    /// A vertex of an object that the next level keeps has no parent there.
    ORPHANS = "ZV-L4-057", Error, "vertices without a parent in the next level",
        Advice("make the coarser level anew");
    /// The root says that levels are linked, and from this level no link leads to the next.
    NOT_LINKED = "ZV-L4-058", Warning, "levels that are not linked",
        Advice("make the coarser level anew, or correct cross_level_storage");
    /// A level was not made anew since finer ones changed.
    STALE = "ZV-L4-059", Note, "a level that is behind",
        Advice("make the coarser level anew");
}
