//! L3: blobs, and whether they agree.

use crate::rule::rules;

rules! { Consistency;
    /// An error before leaves nothing that blobs could be checked against.
    NOT_RUN = "ZV-L3-000", Error, "consistency was not checked",
        Advice("mend what L1 and L2 found, and validate again");
    /// A cell that its array lists has no object in the store.
    CELL_MISSING = "ZV-L3-001", Error, "a cell is missing",
        Advice("restore the file from a copy; what was in the chunk is lost otherwise");
    /// A cell cannot be decoded: its checksum, compression, frame or shard is damaged.
    CELL_UNREADABLE = "ZV-L3-002", Error, "a cell cannot be decoded",
        Advice("restore the file from a copy; what was in the chunk is lost otherwise");
    /// A cell was not delivered, or is larger than the memory that validating may take.
    CELL_NOT_CHECKED = "ZV-L3-003", Error, "a cell was not checked",
        Advice("validate again, with more memory if the finding says so");
    /// A part of a level cannot be opened, so that none of its cells was checked.
    PART_NOT_CHECKED = "ZV-L3-004", Error, "a part was not checked",
        Advice("mend what else is found of this node, and validate again");
    /// The list of chunks that an array has is missing or names what is no chunk of it; what it does
    /// not name is not found by going through the chunks.
    PRESENCE = "ZV-L3-005", Error, "a wrong list of chunks",
        Repair("the list is made anew from the cells that are there");
    /// The object index says that chunk keys have another number of coordinates than the level's have.
    SID_NDIM = "ZV-L3-040", Error, "manifests of another number of coordinates",
        Advice("correct sid_ndim, which is the number of axes, and one more in levels chunked by an attribute");
    /// A manifest cannot be decoded, so that nobody knows which fragments its object has.
    MANIFEST_UNREADABLE = "ZV-L3-041", Error, "a manifest cannot be decoded",
        Advice("restore object_index/manifests from a copy");
}
