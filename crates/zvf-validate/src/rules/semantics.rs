//! L4: the meaning of the geometry.

use crate::rule::rules;

rules! { Semantics;
    /// An earlier error, the memory budget or overlapping fragments prevent the checks of geometry.
    NOT_RUN = "ZV-L4-000", Error, "semantics were not checked",
        Advice("fix the findings of L1 to L3, then validate again");
    /// The convention of links is not valid for the kind of geometry. Readers use it to connect
    /// vertices.
    CONVENTION = "ZV-L4-001", Error, "a links convention that the geometry cannot have",
        Advice("correct links_convention, or geometry_types");
    /// The store holds points, which are not connected, but also links between them.
    LINKED_POINTS = "ZV-L4-002", Warning, "points with links",
        Advice("correct geometry_types if this is a graph, or delete the links");
    /// The links of a mesh have fewer than three ends.
    NO_FACES = "ZV-L4-003", Error, "a mesh whose links are not faces",
        Advice("correct geometry_types if this is a graph");
    /// An object of lines does not have two vertices.
    LINE_ENDS = "ZV-L4-010", Error, "a line without two ends",
        Advice("correct geometry_types if these are polylines, or write the store again");
    /// Links between chunks must be exactly the steps at which paths cross from one chunk to
    /// another. If there are links inside chunks, they must be exactly the steps inside chunks. Queries of
    /// this engine follow manifests, so results are right; software that follows the links is misled.
    PATH_LINKS = "ZV-L4-011", Warning, "links are not the steps of paths",
        Advice("write the paths or their links again");
    /// Writers of 0.6 and 0.7 store row 0 in links between chunks; writers of lines store the
    /// fragment number. Readers follow manifests and ignore these links.
    PATH_LINKS_WITHOUT_VERTICES = "ZV-L4-012", Note, "links between chunks name no vertices",
        Advice("rewrite the store with `zvf migrate`, which rebuilds the links from manifests");
    /// Links give a vertex of a skeleton two parents. Readers use one of them.
    TWO_PARENTS = "ZV-L4-020", Error, "a vertex with two parents",
        Advice("remove the wrong link, or declare a graph");
    /// A vertex of a skeleton is its own ancestor.
    CYCLE = "ZV-L4-021", Error, "a skeleton with a cycle",
        Advice("remove the wrong link, or declare a graph");
    /// A vertex of a skeleton has a parent in another object.
    PARENT_IN_OTHER_OBJECT = "ZV-L4-022", Error, "a parent in another object",
        Advice("remove the wrong link, or merge the two objects");
    /// An object of a skeleton has several roots. Other writers refuse to store such an object.
    FOREST = "ZV-L4-023", Note, "an object of several trees",
        Advice("split the object by tree, if other programs need it");
    /// An edge starts and ends at one vertex.
    SELF_LOOPS = "ZV-L4-030", Note, "an edge to itself",
        Advice("remove the edge, if it has no meaning");
    /// A link occurs several times.
    DUPLICATE_LINKS = "ZV-L4-031", Note, "a duplicate link",
        Advice("remove the copies, if they have no meaning");
    /// A link joins vertices of different objects. Up to 0.7 this is also the effect of writers
    /// that reordered the vertices of a graph but not its links.
    LINKS_BETWEEN_OBJECTS = "ZV-L4-032", Note, "a link between objects",
        Advice("merge the two objects, if they are to be read together");
    /// A face has a corner twice.
    DEGENERATE = "ZV-L4-040", Warning, "a degenerate face",
        Advice("remove the face");
    /// Two faces traverse their common edge in one direction, so one of them shows its back.
    WINDING = "ZV-L4-041", Warning, "inconsistent winding of faces",
        Advice("flip faces, if programs depend on their winding");
    /// An edge belongs to more than two faces.
    NOT_MANIFOLD = "ZV-L4-042", Note, "an edge of more than two faces",
        Advice("remove faces, if programs need a manifold");
    /// A level has more vertices than the finer level before it.
    MORE_VERTICES = "ZV-L4-051", Error, "a coarser level with more vertices",
        Advice("build the coarser level again");
    /// The bins of a level are smaller than those of the finer level before it.
    FINER_BINS = "ZV-L4-052", Error, "a coarser level with smaller bins",
        Advice("correct scale and translation of the level in multiscales");
    /// `object_sparsity` of a level differs from the share of objects with vertices in it.
    SPARSITY = "ZV-L4-053", Warning, "a wrong object_sparsity",
        Advice("correct object_sparsity, or build the level again");
    /// An object has vertices in a level, but none in the finer level from which it was made.
    NEW_OBJECTS = "ZV-L4-056", Warning, "an object in a coarser level only",
        Advice("build the level again");
    /// A vertex of an object that the next level keeps has no parent there. In a mesh, only vertices
    /// with a face need one.
    ORPHANS = "ZV-L4-057", Error, "vertices without a parent in the next level",
        Advice("build the coarser level again");
    /// The root declares links between levels, but no link leads from this level to the next.
    NOT_LINKED = "ZV-L4-058", Warning, "levels are not linked",
        Advice("build the coarser level again, or correct cross_level_storage");
    /// Finer levels changed since this level was built.
    STALE_LEVEL = "ZV-L4-059", Note, "a stale level",
        Advice("build the coarser level again");
}
