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
    /// A cell is stored that the array does not list: readers that go through the chunks pass it over,
    /// and those that know the chunk from elsewhere do not.
    UNLISTED = "ZV-L3-006", Error, "a cell that is not listed",
        Repair("nonempty_chunks lists the cells that are there as well");
    /// An object is stored for a cell outside the array's grid. No reader can ask for it.
    CELL_OUTSIDE = "ZV-L3-007", Warning, "a cell outside the grid of its array",
        Advice("delete the file, or correct the array's shape if the chunk belongs to it");
    /// A cell is stored and listed that holds nothing. Writers leave such cells out.
    CELL_EMPTY = "ZV-L3-008", Warning, "an empty cell is stored",
        Advice("write the store again; nothing is lost");
    /// A chunk has a part in a shard, and another in a second shard. Which of the two counts is not said.
    CELL_TWICE = "ZV-L3-009", Error, "a cell is in two shards",
        Advice("decide which holds, and take the chunk out of the other's shard_index");
    /// The vertices of a chunk are no whole number of rows of coordinates of the declared type.
    VERTICES_CUT = "ZV-L3-010", Error, "vertices are no whole rows",
        Advice("correct dtype if it is wrong, or restore the file from a copy");
    /// A coordinate is NaN or infinite. No query finds such a vertex by place.
    NOT_FINITE = "ZV-L3-011", Error, "a coordinate that is not finite",
        Advice("delete the vertices, or write the store again with their right coordinates");
    /// A vertex is stored in a chunk that its coordinates are not in. Queries by place miss it.
    OUTSIDE_CHUNK = "ZV-L3-012", Error, "a vertex outside its chunk",
        Advice("correct chunk_shape if it is wrong, or write the store again");
    /// Vertices are outside the bounds that the root declares. Readers that begin with the bounds pass
    /// them over.
    OUT_OF_BOUNDS = "ZV-L3-013", Warning, "vertices outside the bounds",
        Repair("bounds become the box of what they were and of all vertices");
    /// The vertices of the level are compressed by Draco, so that positions and rows were not checked.
    NOT_DECODED = "ZV-L3-014", Note, "vertices were not decoded",
        Advice("check the geometry with software that reads Draco");
    /// Behind the last row that a chunk has in a padded array stands something else than the fill value.
    PADDING = "ZV-L3-015", Warning, "something stands behind the last row",
        Advice("write the store again, or correct the fragment index if rows are lost");
    /// The first number of the chunk's key stands for no value of the attribute that chunks are split
    /// by, or a vertex has another value.
    OTHER_VALUE = "ZV-L3-016", Error, "a chunk of another value",
        Advice("correct chunk_attribute_values, or write the store again");
    /// `vertex_count` of the level is not the number of its vertices. Streaming writers leave it 0, and
    /// edits leave it as it was.
    VERTEX_COUNT = "ZV-L3-017", Note, "vertex_count is not the number of vertices",
        Repair("vertex_count becomes the number of vertices that are there");
    /// A fragment index cannot be decoded: which rows are whose is not known.
    FRAGMENTS_UNREADABLE = "ZV-L3-020", Error, "a fragment index cannot be decoded",
        Advice("restore the file from a copy");
    /// Bits behind the last fragment are set in a fragment index. Readers do not look at them.
    FRAGMENT_PADDING = "ZV-L3-021", Warning, "bits are set behind the last fragment",
        Advice("write the store again; nothing is lost");
    /// A fragment names rows that the chunk has not. Readers leave them out or stop.
    FRAGMENT_ROWS = "ZV-L3-022", Error, "a fragment names rows that are not there",
        Advice("restore vertices or vertex_fragments of the chunk from a copy");
    /// A chunk has vertices and no fragment index, where the level has them.
    NO_FRAGMENTS = "ZV-L3-023", Error, "vertices without a fragment index",
        Advice("restore the cell of vertex_fragments from a copy");
    /// Vertices are in no fragment: what reads by object or bin never finds them.
    ROWS_UNUSED = "ZV-L3-024", Warning, "vertices in no fragment",
        Advice("delete them with the software that left them, or restore the fragment index");
    /// The level says that fragments are the rows of each chunk in order, so that readers need not read
    /// them; they are not.
    FALSE_TILE = "ZV-L3-025", Error, "fragments_tile is claimed and does not hold",
        Repair("fragments_tile is taken away");
    /// A point is in the fragment of another bin. Queries by place that skip bins miss it.
    WRONG_BIN = "ZV-L3-026", Error, "a point in another bin",
        Advice("write the store again, or correct base_bin_shape");
    /// A chunk of binned points has another number of fragments than a chunk has bins, so that which
    /// fragment is which bin is not known. Some readers take the number for the bin.
    BIN_COUNT = "ZV-L3-027", Warning, "another number of fragments than bins",
        Advice("write the store again, or correct base_bin_shape");
    /// An attribute has values that are not one row for each vertex of the chunk.
    VERTEX_ATTRIBUTE_ROWS = "ZV-L3-030", Error, "an attribute has not one row for each vertex",
        Advice("write the attribute again; which value belongs to which vertex is not known");
    /// An attribute has values that are not one row for each fragment of the chunk.
    FRAGMENT_ATTRIBUTE_ROWS = "ZV-L3-031", Error, "an attribute has not one row for each fragment",
        Advice("write the attribute again; which value belongs to which fragment is not known");
    /// An attribute has another number of values a row in one chunk than in others.
    ATTRIBUTE_WIDTH = "ZV-L3-032", Error, "an attribute of different widths",
        Advice("write the attribute again");
    /// `row_shape` or `channel_names` declare another number of values a row than cells have. Readers
    /// have to go by the cells, as several writers declare it wrongly.
    ATTRIBUTE_SHAPE = "ZV-L3-033", Note, "an attribute of another width than declared",
        Repair("row_shape becomes what cells have");
    /// A code of a categorical attribute stands for no category.
    CODE = "ZV-L3-034", Error, "a code that stands for nothing",
        Advice("correct categories, or write the attribute again");
    /// The attribute `object_id` of fragments names other owners than manifests do.
    OWNERS = "ZV-L3-035", Error, "fragments with other owners than manifests say",
        Repair("the cell is written anew from the manifests");
    /// A manifest cannot be decoded, so that nobody knows which fragments its object has.
    MANIFEST_UNREADABLE = "ZV-L3-041", Error, "a manifest cannot be decoded",
        Advice("restore object_index/manifests from a copy");
    /// A row of the object index has no manifest, not even an empty one. Some readers stop at it.
    NO_MANIFEST = "ZV-L3-042", Warning, "objects without a manifest",
        Advice("write an empty manifest, which is four zero bytes, or the object's");
    /// An object has fragments in a chunk that has none.
    MANIFEST_CHUNK = "ZV-L3-043", Error, "an object in a chunk that is not there",
        Advice("restore the chunk from a copy, or delete the object");
    /// An object has a fragment that its chunk has not.
    MANIFEST_FRAGMENT = "ZV-L3-044", Error, "an object with a fragment that is not there",
        Advice("restore vertex_fragments of the chunk from a copy, or delete the object");
    /// `num_present` is not the number of objects that have a fragment.
    NUM_PRESENT = "ZV-L3-046", Warning, "num_present is not the number of objects with fragments",
        Repair("num_present becomes that number");
    /// Two objects have one id: readers find one of them.
    ID_TWICE = "ZV-L3-047", Error, "an id of two objects",
        Advice("give one of them another id");
    /// `object_ids_sorted` is said of ids that do not ascend. Readers that search for an id by halves
    /// miss objects.
    IDS_UNSORTED = "ZV-L3-048", Error, "ids that do not ascend as said",
        Repair("object_ids_sorted becomes false");
    /// A fragment belongs to several objects, and the level or the root does not say that this
    /// happens. Who changes one object changes the others.
    SHARED = "ZV-L3-050", Warning, "fragments of several objects that are not declared",
        Repair("the level says shared_fragments, and the root has that capability");
    /// A fragment with vertices belongs to no object, in a level of objects.
    UNOWNED = "ZV-L3-051", Warning, "fragments of no object",
        Advice("delete them with the software that left them, or give them to an object");
    /// Points of no object, in a level of objects.
    UNOWNED_POINTS = "ZV-L3-052", Note, "points of no object",
        Advice("nothing needs to be done if they belong to none");
    /// A level says that it keeps the ids of its parent, and has others.
    OTHER_IDS = "ZV-L3-053", Error, "ids that the level above has not",
        Advice("make the coarser levels again");
    /// The mask of an attribute does not say of each row whether it has a value.
    MASK = "ZV-L3-063", Error, "a mask that does not fit its attribute",
        Advice("write the attribute again");
    /// The members of a group cannot be decoded.
    GROUP_UNREADABLE = "ZV-L3-064", Error, "a group cannot be decoded",
        Advice("restore groups from a copy");
    /// A group has a member that is no object.
    GROUP_MEMBER = "ZV-L3-065", Warning, "a member that is no object",
        Advice("take it out of the group, or restore the object");
    /// A group has listed members and is a range of ids as well. Readers take the range.
    GROUP_TWICE = "ZV-L3-066", Warning, "a group that is a list and a range",
        Advice("decide which holds, and take the other away");
    /// A parametric object has a type that is not declared, or that is no type number.
    FORMULA_TYPE = "ZV-L3-070", Error, "a formula of no type",
        Advice("declare the type in parametric_types, or correct the row");
    /// A row has no room for the coefficients of its type, or more numbers than its type has.
    COEFFICIENTS = "ZV-L3-071", Error, "a formula of another number of coefficients",
        Advice("correct parametric_types or the row");
    /// Counts of a further geometry are not those of its arrays.
    FURTHER_COUNT = "ZV-L3-073", Warning, "a further geometry of other counts than declared",
        Repair("the count becomes that of the array");
    /// A link of a further geometry names a vertex that it has not.
    FURTHER_LINK = "ZV-L3-074", Error, "a link to a vertex that is not there",
        Advice("restore the links from a copy");
    /// The names of parametric objects are not one text for each. Readers stop at them.
    FORMULA_NAMES = "ZV-L3-075", Error, "names that are not one for each formula",
        Advice("write names again, or delete them");
    /// What describes links, or the level that they lead to, cannot be used, so that none of them was
    /// checked. Readers that come to them fail, or see no links.
    LINK_NOT_CHECKED = "ZV-L3-100", Error, "links that were not checked",
        Advice("mend what else is found of this node, and validate again");
    /// Up to 0.8.1 the links of a delta are in two places, inside chunks and between them, and have one width.
    LINK_WIDTHS = "ZV-L3-101", Error, "links of two widths",
        Advice("delete what does not belong to the geometry, or move it to a store of its own");
    /// The payload of a cell is no whole number of link rows, or its groups do not hold.
    LINK_CELL = "ZV-L3-103", Error, "a cell of links cannot be decoded",
        Advice("restore the cell from a copy; its links are lost otherwise");
    /// The number that says in which order the ends of a link were given is none of the possible ones.
    LINK_ORDER = "ZV-L3-104", Error, "a link whose order is none",
        Advice("restore the cell from a copy; winding and direction of the link are lost otherwise");
    /// A link names a vertex by a row that its chunk does not have.
    LINK_ROW = "ZV-L3-105", Error, "a link to a vertex that is not there",
        Advice("remove the links, or restore the vertices that they were written for");
    /// A link ends in a chunk without vertices.
    LINK_CHUNK = "ZV-L3-106", Error, "a link to a chunk that is not there",
        Advice("remove the links, or restore the vertices that they were written for");
    /// The chunks in the key of a cell of 0.8 do not ascend, as they must where links are undirected and
    /// stored once: who looks for a link does not look there.
    LINK_CELL_KEY = "ZV-L3-107", Error, "links where nobody looks for them",
        Advice("rewrite the family with `zvf migrate`");
    /// The ends of undirected links that are stored once ascend by chunk and row; copies of links start with
    /// the first of their chunk, the others as they were given. Otherwise one link can be there twice.
    LINK_NOT_SORTED = "ZV-L3-108", Warning, "links whose ends are not in order",
        Advice("rewrite the family with `zvf migrate`");
    /// The order of ends is data in a directed family, so that none may be put in another.
    LINK_DIRECTED = "ZV-L3-109", Error, "a directed link that was put in order",
        Advice("rewrite the family with `zvf migrate`");
    /// A family that has a copy of each link in each of its chunks lacks some, or copies differ.
    LINK_COPIES = "ZV-L3-110", Error, "copies of links that differ",
        Advice("rewrite the family with `zvf migrate`, which keeps the copy in the first chunk");
    /// A count of links is not what the cells hold. Counts left behind by an edit are corrected; too few links
    /// may also be what is left of a cell that was cut.
    LINK_COUNT = "ZV-L3-111", Error, "a wrong count of links",
        Repair("the count is corrected");
    /// There are links, and nothing says how many, so that nobody sees when some get lost.
    LINK_UNCOUNTED = "ZV-L3-112", Warning, "links without a count",
        Repair("the count is added");
    /// `link_fragments` of a chunk cannot be decoded, has rows that the links have not, or misses some.
    LINK_GROUPS = "ZV-L3-113", Error, "groups of links that do not fit the links",
        Advice("write the links of the chunk anew; no reader of whole families looks at the groups");
    /// A chunk has links and `link_fragments` nothing for it. Only editors look there.
    LINK_GROUPS_MISSING = "ZV-L3-114", Warning, "links without groups",
        Advice("write the links of the chunk anew, if they are to be edited");
    /// An attribute of links does not have one row for each link, in the cells that the links have.
    LINK_VALUES = "ZV-L3-115", Error, "values that do not fit the links",
        Advice("write the attribute anew from its source, or delete it");
    /// The declared number of columns of an attribute of links is not that of its rows. Readers go by the rows.
    LINK_COLUMNS = "ZV-L3-116", Note, "a wrong number of columns",
        Repair("row_shape is corrected");
    /// Links inside chunks have values that those between chunks have not, or the other way round: they are
    /// stored apart up to 0.8.1, and some writers drop those between chunks.
    LINK_VALUES_ABSENT = "ZV-L3-117", Note, "links without values that others have",
        Advice("write the store anew from its source, if the values are needed");
    /// Links are stored both ways between two levels, and are not the same links.
    LINK_MIRROR = "ZV-L3-118", Error, "links up that are not those down",
        Advice("delete the family that is wrong, or make the coarser level anew");
    /// Links in the form of generations up to 0.8 beside those of 0.9, as early versions of 0.9 wrote them.
    /// Readers do not see them.
    LINK_OLD_FORM = "ZV-L3-120", Error, "links in the form of an older generation",
        Advice("rewrite the store with `zvf migrate`");
}
