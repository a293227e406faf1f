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
    /// What is in `headers` is no group, whose attributes would be the header of a file.
    HEADER = "ZV-L1-050", Warning, "a header that is no group",
        Advice("write the header again; geometry does not need it");
}
