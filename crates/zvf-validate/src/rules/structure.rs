//! L1: the nodes of a store and their types.

use crate::rule::rules;

rules! { Structure;
    /// The root has no `zarr.json`: the address does not name a store, or names a folder inside or
    /// above one.
    NO_ROOT = "ZV-L1-001", Error, "no zarr.json at the root",
        Advice("give the address of the folder that holds the store's zarr.json");
    /// The root's `zarr.json` is not a Zarr v3 group, or is not valid JSON.
    ROOT_UNREADABLE = "ZV-L1-002", Error, "the root cannot be read",
        Advice("restore zarr.json from a backup; no other file says how to read the store");
    /// The structure matches no generation of the format, or parts of it match generations that
    /// contradict each other.
    NO_GENERATION = "ZV-L1-003", Error, "unknown generation",
        Advice("correct zv_version, or rewrite the store with the software that created it");
    /// The root has no child named by a number.
    NO_LEVEL = "ZV-L1-004", Error, "no level",
        Advice("restore the level folders from a backup");
    /// A node's `zarr.json` is not a Zarr v3 node, or uses an unsupported extension.
    NODE_UNREADABLE = "ZV-L1-005", Error, "a node cannot be read",
        Advice("restore the file from a backup, or delete the node if nothing needs it");
    /// The store did not deliver a node, because a request failed.
    NODE_UNAVAILABLE = "ZV-L1-006", Error, "a node was not checked",
        Advice("validate again");
    /// The store does not support listing, so it cannot be validated.
    UNLISTABLE = "ZV-L1-007", Error, "the store cannot be listed",
        Advice("validate the store where it can be listed: on its disk or in its bucket");
    /// No reader of this generation looks at this file or folder.
    UNKNOWN_ENTRY = "ZV-L1-008", Warning, "a file or folder that no reader opens",
        Advice("delete it, unless another program needs it");
    /// The node is a group where its generation has an array, or an array where its generation has
    /// a group. Nodes below it are not checked.
    NODE_TYPE = "ZV-L1-009", Error, "a node of the wrong type",
        Advice("restore zarr.json from a backup, or write the part again");
    /// The files of a part exist, but not the `zarr.json` that says how to read them.
    NODE_MISSING = "ZV-L1-010", Error, "the zarr.json of a part is missing",
        Advice("restore zarr.json from a backup; no other file says how to read the part");
    /// A folder between nodes has no `zarr.json`, which 0.9 requires. Readers that do not list
    /// folders find nothing below it.
    GROUP_MISSING = "ZV-L1-011", Warning, "a folder is not a group",
        Advice("add a zarr.json of an empty group");
    /// A folder between nodes has no `zarr.json`. Writers up to 0.8 omit it. Readers that list only
    /// groups, such as the reference package 0.2.0, do not see the nodes below it.
    GROUP_IMPLICIT = "ZV-L1-012", Note, "a folder is a group without a zarr.json",
        Advice("add a zarr.json of an empty group, if old readers must see the nodes below");
    /// A level has no `vertices`.
    NO_VERTICES = "ZV-L1-013", Error, "a level without vertices",
        Advice("restore the folder from a backup, or delete the level");
    /// A level has no `vertex_fragments`, so its objects and bins cannot be found.
    NO_VERTEX_FRAGMENTS = "ZV-L1-014", Error, "vertices without fragments",
        Advice("restore the folder from a backup");
    /// A graph or mesh has vertices but no links. Writers create the node even for zero links.
    NO_LINKS = "ZV-L1-015", Warning, "a graph or mesh without links",
        Advice("restore the folder from a backup, or correct geometry_types");
    /// Chunks hold links, but `link_fragments`, which groups them, does not exist. Cells that start
    /// with a header of groups, as in stores of the 0.4 schema, are read here; readers of 0.6 and
    /// later take the header for links.
    NO_LINK_FRAGMENTS = "ZV-L1-016", Warning, "links without link fragments",
        Advice("migrate the store, which writes link_fragments");
    /// Lines, polylines or streamlines have no `object_index`, so no path can be followed. Or a level
    /// lists an `object_index` that does not exist, so queries refuse the level.
    NO_OBJECT_INDEX = "ZV-L1-017", Error, "no object index",
        Advice("restore the folder from a backup, or correct geometry_types and arrays_present");
    /// The object index counts objects but has no manifests.
    NO_MANIFESTS = "ZV-L1-018", Error, "objects without manifests",
        Advice("restore the array from a backup; without it the members of each object are lost");
    /// The object index has no ids, although its layout requires them. Readers number the objects
    /// 0, 1, 2, ….
    NO_OBJECT_IDS = "ZV-L1-019", Error, "objects without ids",
        Advice("restore the array from a backup, or set layout to vlen_manifests_v1 if the ids are 0, 1, 2, …");
    /// `arrays_present` of a level names a part that does not exist.
    DECLARED_MISSING = "ZV-L1-020", Warning, "a listed part does not exist",
        Repair("removes the name from the list; the data of the part stay lost");
    /// `arrays_present` of a level does not name an existing part. Readers do not rely on the list.
    PRESENT_UNDECLARED = "ZV-L1-021", Note, "an existing part is not listed",
        Repair("adds the name to the list");
    /// The name of a cell of links between chunks is not the chunks of as many ends as its family
    /// declares. Readers refuse all links of the family, because such a name belongs to another layout.
    LINK_CELL_NAME = "ZV-L1-022", Error, "a cell of links with a malformed name",
        Advice("restore the name from a backup, or delete the cell; its links are lost then");
    /// There are links between levels, but `format_capabilities` does not list `multiscale_links`.
    LINKS_UNDECLARED = "ZV-L1-023", Warning, "links between levels without their capability",
        Repair("adds the token to the list");
    /// An entry of `headers` is not a group, so it has no attributes to hold the header of a file.
    HEADER = "ZV-L1-050", Warning, "a header is not a group",
        Advice("write the header again; the geometry does not need it");
}
