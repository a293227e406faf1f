//! L1: nodes.

use crate::rule::rules;

rules! { Structure;
    /// There is no `zarr.json` at the root: this is no store, or the address is not its root.
    NO_ROOT = "ZV-L1-001", Error, "no zarr.json at the root",
        Advice("give the address of the folder that holds the store's zarr.json");
    /// The root's `zarr.json` is no Zarr v3 group, or nothing that can be read.
    ROOT_UNREADABLE = "ZV-L1-002", Error, "the root cannot be read",
        Advice("restore zarr.json from a copy; nothing else says how to read the store");
    /// The structure fits no generation, or several that contradict each other.
    NO_GENERATION = "ZV-L1-003", Error, "the generation cannot be told",
        Advice("correct zv_version, or rewrite the store with the software that wrote it");
    /// The root has no child named by a number.
    NO_LEVEL = "ZV-L1-004", Error, "no level",
        Advice("restore the level folders from a copy");
    /// A node's `zarr.json` is no Zarr v3 node, or uses what no reader here understands.
    NODE_UNREADABLE = "ZV-L1-005", Error, "a node cannot be read",
        Advice("restore the file from a copy, or delete the node if nothing needs it");
    /// A node was not delivered.
    NODE_NOT_CHECKED = "ZV-L1-006", Error, "a node was not checked",
        Advice("validate again");
    /// The store cannot list what it holds, so that only what is listed in metadata can be checked.
    UNLISTABLE = "ZV-L1-007", Error, "the store cannot be listed",
        Advice("validate where the store can be listed: on its disk or in its bucket");
    /// A file or folder that no reader of this generation looks at.
    STRAY = "ZV-L1-008", Warning, "something no reader looks at",
        Advice("delete it, unless another program needs it");
    /// A node is a group where its generation has an array, or an array where it has a group. What is
    /// below it is not looked at.
    NODE_TYPE = "ZV-L1-009", Error, "a node of the wrong type",
        Advice("restore zarr.json from a copy, or write the part again");
    /// Files of a part are there, and the `zarr.json` that says how to read them is not.
    NODE_MISSING = "ZV-L1-010", Error, "the zarr.json of a part is missing",
        Advice("restore zarr.json from a copy; nothing else says how to read the part");
    /// A folder between nodes has no `zarr.json`, which 0.9 demands: readers that do not list folders
    /// find nothing below it.
    GROUP_MISSING = "ZV-L1-011", Warning, "a folder is no group",
        Advice("put a zarr.json of an empty group there");
    /// A folder between nodes has no `zarr.json`. Writers up to 0.8 left it out; readers that list
    /// groups only, as the package 0.2.0 does, do not see what is below.
    GROUP_IMPLICIT = "ZV-L1-012", Note, "a folder is a group without saying so",
        Advice("put a zarr.json of an empty group there, if old readers are to see what is below");
    /// A level has no `vertices`.
    NO_VERTICES = "ZV-L1-013", Error, "a level without vertices",
        Advice("restore the folder from a copy, or delete the level");
    /// A level has no `vertex_fragments`, so that its objects and bins cannot be found.
    NO_VERTEX_FRAGMENTS = "ZV-L1-014", Error, "vertices without fragments",
        Advice("restore the folder from a copy");
    /// A graph or mesh has vertices and no links. Writers make the node even when there are none.
    NO_LINKS = "ZV-L1-015", Warning, "a graph or mesh without links",
        Advice("restore the folder from a copy, or correct geometry_types");
    /// There are links inside chunks, and `link_fragments`, which groups them, is not there.
    NO_LINK_FRAGMENTS = "ZV-L1-016", Warning, "links without their groups",
        Advice("write the links again; readers that need no groups read them as they are");
    /// Lines, polylines or streamlines have no `object_index`, without which no path can be followed.
    NO_OBJECT_INDEX = "ZV-L1-017", Error, "paths without an object index",
        Advice("restore the folder from a copy, or correct geometry_types");
    /// The object index counts objects and has no manifests.
    NO_MANIFESTS = "ZV-L1-018", Error, "objects without manifests",
        Advice("restore the array from a copy; what belongs to which object is lost otherwise");
    /// The object index has no ids, though its layout demands them: objects are taken for 0, 1, 2, ….
    NO_OBJECT_IDS = "ZV-L1-019", Error, "objects without ids",
        Advice("restore the array from a copy; with layout vlen_manifests_v1 the ids are 0, 1, 2, …");
    /// `arrays_present` of a level names a part that is not there.
    DECLARED_MISSING = "ZV-L1-020", Warning, "a part that is listed and not there",
        Repair("the name is taken off the list; what was in the part is lost");
    /// `arrays_present` of a level does not name a part that is there. Readers do not rely on it.
    PRESENT_UNDECLARED = "ZV-L1-021", Note, "a part that is there and not listed",
        Repair("the name is put on the list");
    /// What is in `headers` is no group, whose attributes would be the header of a file.
    HEADER = "ZV-L1-050", Warning, "a header that is no group",
        Advice("write the header again; geometry does not need it");
}
