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
    /// `zv_version` is missing or is no version. The structure says how to read the store, but readers of the
    /// reference refuse it.
    VERSION = "ZV-L2-004", Error, "no version",
        Advice("write zv_version, if it is known which software wrote the store");
    /// `zv_version` says one generation, and nodes are laid out as another has them; the nodes are believed.
    VERSION_UNTRUE = "ZV-L2-005", Warning, "a version that the structure contradicts",
        Advice("correct zv_version to a version of the generation that the store is laid out as");
    /// A node is laid out as another generation has it. It is read as it is; readers of one generation do not
    /// find it.
    MIXED = "ZV-L2-006", Warning, "nodes of several generations",
        Advice("migrate the store, so that all of it is of one generation");
    /// A field is missing that the format demands. Readers that need it refuse the node; others go on with a
    /// default, which may be wrong.
    FIELD_MISSING = "ZV-L2-007", Error, "a field is missing",
        Advice("write the field, which the specification describes");
    /// A field holds another kind of value, text where a number belongs for one. It is ignored.
    FIELD_KIND = "ZV-L2-008", Error, "a field of another kind",
        Advice("correct the field, which the specification describes");
    /// A number is outside what the field can mean.
    FIELD_RANGE = "ZV-L2-009", Error, "a field out of range",
        Advice("correct the field, which the specification describes");
    /// A field holds a word that is none of those it takes, so that its default is used or the part is not
    /// read.
    WORD = "ZV-L2-010", Error, "an unknown word",
        Advice("use one of the words that the specification lists");
    /// A list has more or fewer values than there are axes, corners or entries.
    DIMENSION = "ZV-L2-011", Error, "a list of another length",
        Advice("give a value for each axis, or remove those that are too many");
    /// A list or table names something twice. The first one counts.
    TWICE = "ZV-L2-012", Warning, "something stands there twice",
        Advice("remove one of the two");
    /// A field disagrees with another, or with the path of its node. The path is believed.
    CONTRADICTION = "ZV-L2-013", Warning, "a field contradicts another",
        Advice("correct the field; where the right value is known, repair does it");
    /// A chunk is no whole number of bins, so that fragments cannot be told from bins.
    BINS = "ZV-L2-014", Error, "bins that do not fill a chunk",
        Advice("correct base_bin_shape or the transformations of the level, so that bins divide chunks");
    /// The chunk shape of a level is no whole multiple of the root's along every axis: links to and from
    /// the level cannot be followed.
    CHUNK_SCALE = "ZV-L2-015", Error, "chunks that are no multiple of the root's",
        Advice("write the level again, with a chunk shape that is a whole multiple of the root's");
    /// A name is no chunk key, no offset of links or no difference of levels, though it stands where one
    /// belongs. What is in it cannot be read.
    SEGMENT = "ZV-L2-016", Error, "a malformed name",
        Advice("rename the folder to what its array says, or delete it if nothing needs it");
    /// A field names a node in a way that no path can have.
    NAME = "ZV-L2-017", Error, "a name that is no name",
        Advice("correct the field to the name of a node");
    /// A dtype stands for no number, or for none that can stand there. The values cannot be read.
    DTYPE = "ZV-L2-018", Error, "no type of number",
        Advice("correct dtype, if it is known what was written");
    /// `geometry_types` names a kind that no version of the format has. Readers treat it as points.
    GEOMETRY_UNKNOWN = "ZV-L2-019", Warning, "an unknown kind of geometry",
        Advice("use one of the kinds that the specification lists");
    /// `geometry_types` is empty, and the store has vertices: readers cannot tell what they are.
    GEOMETRY_NONE = "ZV-L2-020", Warning, "no kind of geometry",
        Advice("name the kind in geometry_types");
    /// A lower bound is above the upper one: nothing is within.
    BOUNDS = "ZV-L2-021", Error, "bounds that end before they start",
        Advice("exchange the corners, or give those of the vertices");
    /// A field that no version of the format has. It is kept, and has no meaning.
    UNKNOWN_FIELD = "ZV-L2-022", Note, "a field that nobody knows",
        Advice("remove it, or put it into user_metadata");
    /// `format_capabilities` has a token that no version of the format has.
    CAPABILITY_UNKNOWN = "ZV-L2-023", Note, "an unknown capability",
        Advice("nothing has to be done; readers ignore what they do not know");
    /// The store uses something that `format_capabilities` does not list.
    CAPABILITY_MISSING = "ZV-L2-024", Warning, "a capability that is not declared",
        Repair("the token is put on the list");
    /// `format_capabilities` lists something that the store does not use.
    CAPABILITY_UNUSED = "ZV-L2-025", Warning, "a capability that is not there",
        Repair("the token is taken off the list");
    /// Links between levels are stored beyond what `cross_level_storage` and `cross_level_depth` say.
    CROSS_LEVEL = "ZV-L2-026", Warning, "links between levels that are said not to be stored",
        Advice("correct cross_level_storage and cross_level_depth, or delete the links");
    /// The types of the axes are not as NGFF has them: time, channels, others, space, and two of space at
    /// least. Stores read the same; viewers refuse them.
    AXES = "ZV-L2-027", Note, "axes that viewers do not take",
        Advice("correct the types of the axes; their order is that of coordinates");
    /// Two axes have the same name, so that none of them can be asked for by it.
    AXIS_NAMES = "ZV-L2-028", Error, "two axes of one name",
        Advice("rename one of them in multiscales[0].axes");
    /// A level has no entry in `multiscales`, so that its bins are not known and viewers do not show it.
    DATASET_MISSING = "ZV-L2-029", Warning, "a level that multiscales does not have",
        Advice("add an entry with scale and translation; that of level 0 is added by repair");
    /// `multiscales` has an entry for a level that is not there.
    DATASET_STRAY = "ZV-L2-030", Warning, "an entry of multiscales without a level",
        Repair("the entry is removed");
    /// The entries of `multiscales` do not ascend by level, as viewers expect.
    DATASET_ORDER = "ZV-L2-031", Note, "entries of multiscales out of order",
        Repair("the entries are sorted by level");
    /// The transformations of a level contradict each other or the bins of level 0. Readers take the
    /// translation for half a bin.
    SCALE = "ZV-L2-032", Warning, "scale and translation that do not fit",
        Advice("correct the transformations: scale is the bin over that of level 0, translation half a bin");
    /// The entry of `multiscales` lacks what viewers recognise it by.
    MULTISCALES = "ZV-L2-033", Note, "multiscales is not as writers write it",
        Advice("set version to \"0.4\" and metadata.format to \"zarr_vectors\"");
    /// The root has no `ome`, by which collections list the store.
    NO_OME = "ZV-L2-034", Warning, "no ome",
        Repair("the node is written from axes and levels");
    /// A field of `ome` is missing or not what the format has.
    OME = "ZV-L2-035", Warning, "a malformed ome",
        Repair("version, type, name and axes are written; everything else is kept");
    /// The nodes of `ome` are not the levels of the store.
    OME_NODES = "ZV-L2-036", Warning, "ome lists other levels",
        Repair("the nodes are written from the levels that are there");
    /// No coordinate system of `ome` has the axes of `multiscales`.
    OME_AXES = "ZV-L2-037", Warning, "ome has other axes",
        Repair("the axes of multiscales are copied");
    /// Levels are not 0, 1, 2, …: one was lost or renamed.
    LEVELS = "ZV-L2-038", Error, "a level is missing",
        Advice("restore the level from a copy, or renumber those after it");
    /// `level` of a level is not the number it is named by, or is missing. The name is believed.
    LEVEL_NUMBER = "ZV-L2-039", Warning, "a level of another number",
        Repair("the number is taken from the name");
    /// `parent_level` is missing, or names a level that is not finer or not there.
    PARENT = "ZV-L2-040", Warning, "a wrong parent",
        Advice("name the level that this one was made from in parent_level");
    /// Chunks are cut by an attribute, and its name, values or dimensions are missing or contradict each
    /// other: chunks cannot be chosen by value.
    CHUNK_ATTRIBUTE = "ZV-L2-041", Error, "chunks by an attribute that is not described",
        Advice("correct chunk_attribute_name, chunk_attribute_values and chunk_dims");
    /// What a level says it has from its parent is not so: ids of a parent that it does not have, or another
    /// number of objects.
    INHERITED = "ZV-L2-042", Warning, "a wrong number of inherited objects",
        Advice("write the level again; the number of objects of the parent is set by repair");
    /// `zv_array` says that the node is something else than its path says. The path is believed.
    TAG = "ZV-L2-043", Warning, "a tag of something else",
        Repair("the tag is set to what the path says");
    /// `zv_array` is missing. Readers go by the path.
    TAG_MISSING = "ZV-L2-044", Note, "no tag",
        Repair("the tag is set to what the path says");
    /// The data type of an array is not the one that its place needs: it cannot be read.
    ARRAY_TYPE = "ZV-L2-045", Error, "an array of another data type",
        Advice("write the part again, or restore zarr.json from a copy");
    /// The chunks of an array are not those that its place needs: cells could not be read one by one.
    ARRAY_CHUNKS = "ZV-L2-046", Error, "an array in other chunks",
        Advice("write the part again, or restore zarr.json from a copy");
    /// The codec that makes bytes of values is missing, or is that of another data type.
    ARRAY_CODECS = "ZV-L2-047", Error, "codecs that do not fit the data type",
        Advice("restore zarr.json from a copy");
    /// The fill value is none of the array's data type; readers of Zarr refuse the array.
    ARRAY_FILL = "ZV-L2-048", Error, "a fill value that does not fit",
        Advice("correct fill_value in zarr.json: \"\" for byte strings, a number for numbers");
    /// The shape of an array is not what its place needs, or what the arrays beside it have.
    ARRAY_SHAPE = "ZV-L2-049", Error, "an array of another shape",
        Advice("write the part again, or restore zarr.json from a copy");
    /// A family of links does not say how many ends a link has or how many numbers a chunk key: readers take
    /// it for empty.
    FAMILY_POLICY = "ZV-L2-050", Error, "links without a policy",
        Advice("restore link_width and sid_ndim of the family; the names of its arrays show both");
    /// `sid_ndim` is not the number of axes, or one more where chunks are cut by an attribute.
    ARITY = "ZV-L2-051", Error, "a wrong number of numbers in a chunk key",
        Repair("sid_ndim is set to what chunk keys of the level have");
    /// An array of links says other offsets, another width or another form of rows than its path and family.
    LINK_ARRAY = "ZV-L2-052", Error, "an array of links that contradicts its place",
        Advice("correct the array or the policy of its family; offsets and width are set by repair");
    /// The family is undirected and canonical, and an array has offsets that are below zero or do not ascend:
    /// readers that look for a link where it belongs do not find it.
    LINK_ORDER = "ZV-L2-053", Error, "links out of canonical order",
        Advice("write the links again");
    /// A family of links goes to a level that the store does not have.
    LINK_TARGET = "ZV-L2-054", Warning, "links to a level that is not there",
        Advice("restore the level from a copy, or delete the links");
    /// An attribute of links has no links beside it.
    LINK_ATTRIBUTE_ORPHAN = "ZV-L2-055", Warning, "attributes of links that are not there",
        Advice("delete the attribute, or restore the links from a copy");
    /// `num_links` of an attribute is not that of its links.
    LINK_ATTRIBUTE_COUNT = "ZV-L2-056", Warning, "an attribute that counts other links",
        Repair("num_links is taken from the family of the links");
    /// The categories of an attribute cannot be told apart by codes of its type.
    DICTIONARY = "ZV-L2-057", Error, "a dictionary that codes do not fit",
        Advice("correct categories and dtype");
    /// An attribute has more or fewer names of columns than columns.
    CHANNELS = "ZV-L2-058", Warning, "names for other columns",
        Advice("correct channel_names or row_shape");
    /// `name` of an attribute is not the name of its node. The node's name is believed.
    NAME_UNTRUE = "ZV-L2-059", Warning, "a name of something else",
        Repair("the name is taken from the path");
    /// The name of an attribute is not made of letters, digits and underscores, which programs expect.
    IDENTIFIER = "ZV-L2-060", Warning, "a name that is no identifier",
        Advice("rename the attribute");
    /// `num_objects` is not the number of rows that the index has.
    OBJECT_COUNT = "ZV-L2-061", Error, "another number of objects",
        Repair("num_objects is set to the rows there are, where manifests and ids agree");
    /// `shape` or `dtype` of a table is not what its array has. The array is believed.
    TABLE_SHAPE = "ZV-L2-062", Warning, "a table of another shape than it says",
        Repair("shape and dtype are taken from the array");
    /// An attribute of objects or groups has more or fewer rows than there are objects or groups.
    TABLE_ROWS = "ZV-L2-063", Warning, "a table of other rows",
        Advice("write the attribute again, with a row for each object or group");
    /// The values of a table are missing, or more or fewer than its shape and type make.
    TABLE_BYTES = "ZV-L2-064", Error, "values that do not fill a table",
        Advice("restore the array from a copy, or correct shape and dtype");
    /// `num_groups` is missing, or not the number of groups that are stored.
    GROUP_COUNT = "ZV-L2-065", Error, "another number of groups",
        Repair("num_groups is set to the groups there are");
    /// Types, rows and names of parametric objects do not fit each other.
    PARAMETRIC = "ZV-L2-066", Error, "parametric objects that contradict each other",
        Advice("write the parametric objects again");
    /// `geometry_index` names what is not there, does not name what is, or counts something else.
    COMPOSITE = "ZV-L2-067", Error, "further geometries that are not as listed",
        Advice("correct geometry_index, or write the geometry again");
    /// An attribute of objects does not say that rows of the fill value have no value. They are given
    /// out as values, where the format has none.
    FILL_MEANING = "ZV-L2-068", Warning, "absent values that are not said to be",
        Advice("set fill_sentinel_meaning to \"absent\", unless such rows are values");
    /// The copy of the nodes in the root, `zvf_nodes`, cannot be understood, names nodes that are not there,
    /// leaves some out, or says of one what it does not say. Who reads over the network goes by it, and misses
    /// what was changed without it.
    NODE_COPY = "ZV-L2-069", Error, "a copy of the nodes that is not what they are",
        Repair("the copy is written anew from the nodes");
    /// The copy of the nodes in the root is of another transaction than the last. It counts for nothing.
    NODE_COPY_BEHIND = "ZV-L2-070", Warning, "a copy of the nodes that is behind",
        Repair("the copy is written anew from the nodes");
}
