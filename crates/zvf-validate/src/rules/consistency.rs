//! L3: the cells of a store, decoded and compared with each other.

use crate::rule::rules;

rules! { Consistency;
    /// An earlier error prevents the checks of cells.
    NOT_RUN = "ZV-L3-000", Error, "consistency was not checked",
        Advice("fix the findings of L1 and L2, then validate again");
    /// An array lists a cell, but the store has no object for it. Or objects are present, but the
    /// store has no cell of their manifests.
    CELL_MISSING = "ZV-L3-001", Error, "a cell is missing",
        Advice("restore the file from a backup; otherwise the data of the chunk are lost");
    /// A cell has a damaged checksum, compression, frame or shard, or text that is not valid.
    CELL_UNREADABLE = "ZV-L3-002", Error, "a cell cannot be decoded",
        Advice("restore the file from a backup; otherwise the data of the chunk are lost");
    /// A cell was not delivered, or does not fit in the memory budget.
    CELL_NOT_CHECKED = "ZV-L3-003", Error, "a cell was not checked",
        Advice("validate again, with more memory if the finding says so");
    /// A part of a level cannot be opened, so none of its cells were checked.
    PART_NOT_CHECKED = "ZV-L3-004", Error, "a part was not checked",
        Advice("fix the other findings about this node, then validate again");
    /// `nonempty_chunks` of an array is missing, or has an entry that is not one of its chunks.
    /// Readers that iterate over the chunks miss unlisted ones.
    CHUNK_LIST = "ZV-L3-005", Error, "a wrong list of chunks",
        Repair("rebuilds the list from the stored cells, unless the grid of the array may be wrong");
    /// The store holds a cell that `nonempty_chunks` does not list. Readers that iterate over the
    /// list skip it; readers that know the chunk from another array do not.
    CELL_UNLISTED = "ZV-L3-006", Error, "a cell is not listed",
        Repair("adds the stored cells to nonempty_chunks");
    /// The store holds an object for a cell outside the array's grid. No reader can request it.
    CELL_OUTSIDE = "ZV-L3-007", Warning, "a cell outside the grid of its array",
        Advice("delete the file, or correct the array's shape if the chunk belongs to it");
    /// A stored and listed cell holds no bytes. Writers omit such cells.
    CELL_EMPTY = "ZV-L3-008", Warning, "an empty cell is stored",
        Advice("write the store again; no data are lost");
    /// Two shards hold a cell for one chunk, and nothing says which one is valid.
    CELL_DUPLICATE = "ZV-L3-009", Error, "a cell is in two shards",
        Advice("decide which one is valid, and remove the chunk from the other's shard_index");
    /// The vertices of a chunk are not a whole number of rows of the declared type.
    VERTICES_PARTIAL_ROW = "ZV-L3-010", Error, "vertices end within a row",
        Advice("correct dtype if it is wrong, or restore the file from a backup");
    /// A coordinate is NaN or infinite. No query by region finds such a vertex.
    NOT_FINITE = "ZV-L3-011", Error, "a coordinate is not finite",
        Advice("delete the vertices, or write the store again with the right coordinates");
    /// A vertex is stored in a chunk that does not contain its coordinates. Queries by region miss
    /// it.
    OUTSIDE_CHUNK = "ZV-L3-012", Error, "a vertex outside its chunk",
        Advice("correct chunk_shape if it is wrong, or write the store again");
    /// Vertices are outside the bounds that the root declares. Readers that start from the bounds
    /// skip them.
    OUT_OF_BOUNDS = "ZV-L3-013", Warning, "vertices outside the bounds",
        Repair("extends the bounds to contain all vertices");
    /// Vertices are declared to be Draco streams, and cannot be decoded.
    NOT_DECODED = "ZV-L3-014", Error, "vertices cannot be decoded",
        Advice("restore the file from a backup, or correct the encoding if it is wrong");
    /// The values after the last row of a chunk in a padded array differ from the fill value.
    PADDING = "ZV-L3-015", Warning, "padding is not the fill value",
        Advice("write the store again, or correct the fragment index if rows are lost");
    /// Chunks are split by an attribute, but the first coordinate of a chunk selects none of its
    /// values, or a vertex in the chunk has another value.
    WRONG_CHUNK_VALUE = "ZV-L3-016", Error, "a chunk of another value",
        Advice("correct chunk_attribute_values, or write the store again");
    /// `vertex_count` of the level differs from the number of its vertices. Streaming writers leave
    /// it 0, and edits do not update it.
    VERTEX_COUNT = "ZV-L3-017", Note, "a wrong vertex_count",
        Repair("sets vertex_count to the number of vertices");
    /// Vertices are Draco streams without the order of their writer, so that attributes of vertices
    /// and links between chunks belong to unknown vertices. zarr-vectors 0.9.2 writes such stores.
    ORDER_LOST = "ZV-L3-018", Error, "vertices have lost their order",
        Advice("write the store again from its source, without Draco or with zvf");
    /// A fragment index cannot be decoded, so the rows of its fragments are unknown.
    FRAGMENTS_UNREADABLE = "ZV-L3-020", Error, "a fragment index cannot be decoded",
        Advice("restore the file from a backup");
    /// The bitmap of a fragment index has bits set after the last fragment. Readers ignore them.
    FRAGMENT_PADDING = "ZV-L3-021", Warning, "nonzero padding in a fragment index",
        Advice("write the store again; no data are lost");
    /// A fragment names rows beyond the end of its chunk. Readers skip them or fail.
    FRAGMENT_ROWS = "ZV-L3-022", Error, "a fragment names missing rows",
        Advice("restore vertices or vertex_fragments of the chunk from a backup");
    /// A chunk has vertices but no fragment index, although the level has fragments.
    NO_FRAGMENTS = "ZV-L3-023", Error, "vertices without a fragment index",
        Advice("restore the cell of vertex_fragments from a backup");
    /// Some vertices belong to no fragment. Reads by object or bin never return them.
    ROWS_UNUSED = "ZV-L3-024", Warning, "vertices in no fragment",
        Advice("delete them with the software that wrote them, or restore the fragment index");
    /// The level declares that fragments are the rows of each chunk in order, so that readers may
    /// skip the fragment indexes, but some fragments are not.
    NOT_TILED = "ZV-L3-025", Error, "fragments_tile is false",
        Repair("removes fragments_tile");
    /// A point is in the fragment of another bin. Queries by region that skip bins miss it.
    WRONG_BIN = "ZV-L3-026", Error, "a point in the wrong bin",
        Advice("write the store again, or correct base_bin_shape");
    /// The fragments of a chunk of binned points are not its bins: neither has each bin one, nor each bin
    /// with points. Regions are not searched by bins then, and some readers take the fragment number as the
    /// bin number.
    BIN_COUNT = "ZV-L3-027", Warning, "a wrong number of fragments for the bins",
        Advice("write the store again, or correct base_bin_shape");
    /// An attribute does not have one row per vertex of the chunk.
    VERTEX_ATTRIBUTE_ROWS = "ZV-L3-030", Error, "an attribute lacks one row per vertex",
        Advice("write the attribute again; its values cannot be matched with vertices");
    /// An attribute does not have one row per fragment of the chunk.
    FRAGMENT_ATTRIBUTE_ROWS = "ZV-L3-031", Error, "an attribute lacks one row per fragment",
        Advice("write the attribute again; its values cannot be matched with fragments");
    /// The number of values per row of an attribute differs between chunks.
    ATTRIBUTE_WIDTH = "ZV-L3-032", Error, "an attribute of varying width",
        Advice("write the attribute again");
    /// `row_shape` or `channel_names` declares a number of values per row that differs from the
    /// cells. Readers must follow the cells, as several writers declare a wrong shape.
    ATTRIBUTE_SHAPE = "ZV-L3-033", Note, "an attribute differs from its declared width",
        Repair("sets row_shape to the width of the cells");
    /// A code of a categorical attribute has no category.
    UNKNOWN_CODE = "ZV-L3-034", Error, "a code without a category",
        Advice("correct categories, or write the attribute again");
    /// The fragment attribute `object_id` names other owners than the manifests.
    OWNERS = "ZV-L3-035", Error, "fragment owners differ from the manifests",
        Repair("rewrites the cell from the manifests, unless manifests or ids are missing");
    /// A manifest cannot be decoded, so the fragments of its object are unknown.
    MANIFEST_UNREADABLE = "ZV-L3-041", Error, "a manifest cannot be decoded",
        Advice("restore object_index/manifests from a backup");
    /// A row of the object index has no manifest, not even an empty one. Some readers fail on it.
    NO_MANIFEST = "ZV-L3-042", Warning, "objects without a manifest",
        Advice("write the object's manifest, or an empty manifest, which is four zero bytes");
    /// An object has fragments in a chunk without any.
    MANIFEST_CHUNK = "ZV-L3-043", Error, "an object in a missing chunk",
        Advice("restore the chunk from a backup, or delete the object");
    /// An object has a fragment that its chunk lacks.
    MANIFEST_FRAGMENT = "ZV-L3-044", Error, "an object with a missing fragment",
        Advice("restore vertex_fragments of the chunk from a backup, or delete the object");
    /// `num_present` differs from the number of objects with a fragment.
    NUM_PRESENT = "ZV-L3-046", Warning, "a wrong num_present",
        Repair("sets num_present to the number of objects with a fragment, unless manifests are missing");
    /// Two objects have one id. Readers find only one of them.
    DUPLICATE_ID = "ZV-L3-047", Error, "two objects have one id",
        Advice("give one of them another id");
    /// `object_ids_sorted` is set, but the ids do not ascend. Readers that use binary search miss
    /// objects.
    IDS_UNSORTED = "ZV-L3-048", Error, "ids are not sorted",
        Repair("sets object_ids_sorted to false");
    /// A fragment belongs to several objects, but the level or the root does not declare shared
    /// fragments. An edit of one object changes the others.
    UNDECLARED_SHARING = "ZV-L3-050", Warning, "undeclared shared fragments",
        Repair("sets shared_fragments in the level, and adds the capability to the root");
    /// A fragment with vertices belongs to no object, although the level has objects.
    UNOWNED = "ZV-L3-051", Warning, "fragments of no object",
        Advice("delete them with the software that wrote them, or assign them to an object");
    /// Points belong to no object, although the level has objects.
    UNOWNED_POINTS = "ZV-L3-052", Note, "points of no object",
        Advice("no action is needed if the points belong to no object");
    /// A level declares that it keeps the ids of its parent, but has ids that the parent lacks.
    PARENT_IDS = "ZV-L3-053", Error, "ids that the parent level lacks",
        Advice("build the coarser levels again");
    /// The mask of an attribute does not have one entry per row.
    MASK = "ZV-L3-063", Error, "a mask does not match its attribute",
        Advice("write the attribute again");
    /// The members of a group cannot be decoded.
    GROUP_UNREADABLE = "ZV-L3-064", Error, "a group cannot be decoded",
        Advice("restore groups from a backup");
    /// A group has a member that is not the id of an object.
    GROUP_MEMBER = "ZV-L3-065", Warning, "a group member is not an object",
        Advice("remove it from the group, or restore the object");
    /// A group has listed members as well as a range of ids. Readers use the range.
    GROUP_LIST_AND_RANGE = "ZV-L3-066", Warning, "a group is both a list and a range",
        Advice("decide which one is valid, and remove the other");
    /// The type of a parametric object is not declared, or is not a type number.
    PARAMETRIC_TYPE = "ZV-L3-070", Error, "a parametric object of an unknown type",
        Advice("declare the type in parametric_types, or correct the row");
    /// A row is too short for the coefficients of its type, or has further numbers after them.
    COEFFICIENTS = "ZV-L3-071", Error, "a wrong number of coefficients",
        Advice("correct parametric_types or the row");
    /// The counts of a composite geometry differ from its arrays.
    COMPOSITE_COUNT = "ZV-L3-073", Warning, "a wrong count of a composite geometry",
        Repair("sets the count to that of the array");
    /// A link of a composite geometry names a vertex that the geometry lacks.
    COMPOSITE_LINK = "ZV-L3-074", Error, "a link to a missing vertex of a composite geometry",
        Advice("restore the links from a backup");
    /// The names of parametric objects are not one text per object. Readers fail on them.
    PARAMETRIC_NAMES = "ZV-L3-075", Error, "names do not match the parametric objects",
        Advice("write the names again, or delete them");
    /// The metadata of links, or the level to which they lead, cannot be used, so none of the links
    /// were checked. Readers fail on them or see no links.
    LINK_NOT_CHECKED = "ZV-L3-100", Error, "links were not checked",
        Advice("fix the other findings about this node, then validate again");
    /// Up to 0.8.1 the links of a level difference are stored in two places, inside chunks and
    /// between them, and must have one width. These have two.
    LINK_WIDTHS = "ZV-L3-101", Error, "links of two widths",
        Advice("delete the links that do not belong to the geometry, or move them to their own store");
    /// The payload of a cell is not a whole number of link rows, or its groups are malformed.
    LINK_CELL = "ZV-L3-103", Error, "a cell of links cannot be decoded",
        Advice("restore the cell from a backup; otherwise its links are lost");
    /// The number that encodes the original order of a link's ends is out of range.
    LINK_ORDER = "ZV-L3-104", Error, "a link with an invalid order",
        Advice("restore the cell from a backup; otherwise winding and direction of the link are lost");
    /// A link names a row that its chunk lacks.
    LINK_ROW = "ZV-L3-105", Error, "a link to a missing vertex",
        Advice("remove the links, or restore the vertices to which they lead");
    /// A link ends in a chunk without vertices.
    LINK_CHUNK = "ZV-L3-106", Error, "a link to a missing chunk",
        Advice("remove the links, or restore the vertices to which they lead");
    /// The chunks in the key of a cell of 0.8 do not ascend, as they must for undirected links
    /// stored once. Readers look up such a link under the ascending key.
    LINK_CELL_KEY = "ZV-L3-107", Error, "links in a cell that readers do not open",
        Advice("rewrite the family with `zvf migrate`");
    /// The ends of undirected links that are stored once must ascend by chunk and row. Copies of
    /// links must start with the first end in their chunk and keep the original order of the
    /// others. Otherwise a link may occur twice.
    LINK_NOT_SORTED = "ZV-L3-108", Warning, "unsorted ends of a link",
        Advice("rewrite the family with `zvf migrate`");
    /// The order of ends carries meaning in a directed family, so no link may be reordered.
    LINK_DIRECTED = "ZV-L3-109", Error, "a directed link was reordered",
        Advice("rewrite the family with `zvf migrate`");
    /// A family that stores a copy of each link in each of its chunks lacks copies, or has copies
    /// that differ.
    LINK_COPIES = "ZV-L3-110", Error, "copies of links differ",
        Advice("rewrite the family with `zvf migrate`, which keeps the copy in the first chunk");
    /// A declared count of links differs from the cells. Edits may leave old counts behind; a count
    /// above the number of links may also mean that a cell was truncated.
    LINK_COUNT = "ZV-L3-111", Error, "a wrong count of links",
        Repair("corrects the count");
    /// A family with links declares no count, so readers cannot detect lost links.
    LINK_UNCOUNTED = "ZV-L3-112", Warning, "links without a count",
        Repair("adds the count");
    /// `link_fragments` of a chunk cannot be decoded, names missing rows, or omits rows.
    LINK_GROUPS = "ZV-L3-113", Error, "link fragments do not match the links",
        Advice("write the links of the chunk again; only editors read the fragments");
    /// A chunk has links but no cell of `link_fragments`. Only editors read it.
    LINK_GROUPS_MISSING = "ZV-L3-114", Warning, "links without link fragments",
        Advice("write the links of the chunk again, if they are to be edited");
    /// An attribute of links does not have one row per link in the cells of the links.
    LINK_VALUES = "ZV-L3-115", Error, "values do not match the links",
        Advice("write the attribute again from its source, or delete it");
    /// The declared number of columns of an attribute of links differs from its rows. Readers
    /// follow the rows.
    LINK_COLUMNS = "ZV-L3-116", Note, "a wrong number of columns",
        Repair("corrects row_shape");
    /// Only the links inside chunks have values, or only those between chunks. They are stored
    /// apart up to 0.8.1, and some writers drop the latter.
    LINK_VALUES_ABSENT = "ZV-L3-117", Note, "links without values",
        Advice("write the store again from its source, if the values are needed");
    /// Links between two levels are stored in both directions, but differ.
    LINK_MIRROR = "ZV-L3-118", Error, "links up and down differ",
        Advice("delete the wrong family, or build the coarser level again");
    /// `num_links` of an attribute differs from that of its links.
    LINK_ATTRIBUTE_COUNT = "ZV-L3-119", Warning, "an attribute with a wrong link count",
        Repair("copies num_links from the family of the links");
    /// Early versions of 0.9 wrote links in the form of generations up to 0.8. Readers of 0.9 do
    /// not see them.
    LINK_LEGACY_FORM = "ZV-L3-120", Error, "links in the form of an older generation",
        Advice("rewrite the store with `zvf migrate`");
    /// An object has fragments in an additive level and in a coarser level that completes it.
    /// Readers return it twice.
    OBJECT_TWICE = "ZV-L3-121", Error, "an object in several levels that complete each other",
        Advice("remove the object from the finer level");
    /// `fragment_link_groups` declares that group k of the links of a chunk holds the links of its
    /// fragment k, but it does not. Readers that rely on it return links of other objects.
    LINK_GROUPS_CLAIM = "ZV-L3-122", Error, "fragment_link_groups is false",
        Repair("removes fragment_link_groups");
    /// A file of a sealed store is damaged, absent, or the file of another place or state, or the
    /// inventory is. Readers refuse it. Another program that changed the store leaves this too,
    /// because it does not know the inventory.
    INVENTORY = "ZV-L3-123", Error, "a file differs from the inventory",
        Advice("restore the file from a backup; if another program changed the store, seal it again with `zvf validate --seal`, and with `--repair --trust-files` if other findings remain");
}
