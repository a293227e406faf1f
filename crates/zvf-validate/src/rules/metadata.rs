//! L2: the metadata of nodes.

use crate::rule::rules;

rules! { Metadata;
    /// An error of L1 prevents the checks of metadata.
    NOT_RUN = "ZV-L2-000", Error, "metadata were not checked",
        Advice("fix the findings of L1, then validate again");
    /// The root's metadata are incomplete or contradictory, so nothing below the root can be read.
    ROOT_UNUSABLE = "ZV-L2-001", Error, "the root's metadata cannot be used",
        Advice("correct the field as the specification describes it");
    /// A level's metadata are incomplete or contradictory, so the level cannot be read.
    LEVEL_UNUSABLE = "ZV-L2-002", Error, "a level's metadata cannot be used",
        Advice("correct the field as the specification describes it");
    /// The shape or origin of an array with one element per chunk does not describe a grid of
    /// chunks.
    GRID = "ZV-L2-003", Error, "an array is not a grid of chunks",
        Advice("correct shape and chunk_grid_origin");
    /// `zv_version` is missing or malformed. The structure shows how to read the store, but the
    /// reference readers refuse it.
    VERSION_MISSING = "ZV-L2-004", Error, "no version",
        Advice("write zv_version, if the software that created the store is known");
    /// `zv_version` names one generation, but the nodes are laid out as another. Readers here
    /// follow the nodes.
    VERSION_MISMATCH = "ZV-L2-005", Warning, "the version contradicts the structure",
        Advice("correct zv_version to a version of the generation that the nodes show");
    /// A node is laid out as another generation has it. It is readable here, but readers of a
    /// single generation do not find it.
    MIXED_GENERATIONS = "ZV-L2-006", Warning, "nodes of several generations",
        Advice("migrate the store, so that all nodes belong to one generation");
    /// A required field is missing. Readers that need it refuse the node; others use a default,
    /// which may be wrong.
    FIELD_MISSING = "ZV-L2-007", Error, "a field is missing",
        Advice("write the field as the specification describes it");
    /// A field holds a value of another JSON type, such as text where a number belongs. Readers
    /// ignore it.
    FIELD_TYPE = "ZV-L2-008", Error, "a field of the wrong type",
        Advice("correct the field as the specification describes it");
    /// A number is outside the valid range of its field.
    FIELD_RANGE = "ZV-L2-009", Error, "a field out of range",
        Advice("correct the field as the specification describes it");
    /// A field holds a word outside its vocabulary. Readers use the default or skip the part.
    UNKNOWN_WORD = "ZV-L2-010", Error, "an unknown word",
        Advice("use one of the words that the specification lists");
    /// A list does not have one value per axis, corner or entry.
    LIST_LENGTH = "ZV-L2-011", Error, "a list of the wrong length",
        Advice("add the missing values, or remove the surplus");
    /// A list or table names an entry twice, and readers use the first, or a JSON object has a member
    /// twice, and readers use the last.
    DUPLICATE = "ZV-L2-012", Warning, "a duplicate entry",
        Advice("remove one of the two");
    /// A field disagrees with another field, or with the path of its node. Readers follow the path.
    CONTRADICTION = "ZV-L2-013", Warning, "a field contradicts another",
        Advice("correct the field; repair does so where the right value is known");
    /// The edges of a chunk are not whole multiples of the bin, so fragments cannot be assigned to
    /// bins.
    BINS = "ZV-L2-014", Error, "bins do not fill a chunk",
        Advice("correct base_bin_shape or the transformations of the level, so that bins divide chunks");
    /// The chunk shape of a level is not a whole multiple of the root's along every axis, so links
    /// to and from the level cannot be followed.
    CHUNK_SCALE = "ZV-L2-015", Error, "chunks are not a multiple of the root's",
        Advice("write the level again, with a chunk shape that is a whole multiple of the root's");
    /// A name is not a valid chunk key, link offset or level difference, although its position
    /// requires one. The data below it cannot be read.
    SEGMENT = "ZV-L2-016", Error, "a malformed path segment",
        Advice("rename the folder to match its array, or delete it if nothing needs it");
    /// A field refers to a node by a name that no path can have.
    INVALID_NAME = "ZV-L2-017", Error, "an invalid node name",
        Advice("correct the field to the name of a node");
    /// A dtype is unknown, or is not allowed for this part. The values cannot be read.
    DTYPE = "ZV-L2-018", Error, "an unusable dtype",
        Advice("correct dtype, if the written type is known");
    /// `geometry_types` names a kind that no version of the format defines. Readers treat it as
    /// points.
    GEOMETRY_UNKNOWN = "ZV-L2-019", Warning, "an unknown kind of geometry",
        Advice("use one of the kinds that the specification lists");
    /// `geometry_types` is empty although the store has vertices, so readers cannot tell what they
    /// represent.
    GEOMETRY_NONE = "ZV-L2-020", Warning, "no kind of geometry",
        Advice("name the kind in geometry_types");
    /// A lower bound is above its upper bound, so the bounds contain nothing.
    BOUNDS = "ZV-L2-021", Error, "inverted bounds",
        Advice("exchange the corners, or compute the bounds from the vertices");
    /// No version of the format defines this field. Writers keep it; it has no meaning.
    UNKNOWN_FIELD = "ZV-L2-022", Note, "an unknown field",
        Advice("remove it, or move it into user_metadata");
    /// `format_capabilities` has a token that no version of the format defines.
    CAPABILITY_UNKNOWN = "ZV-L2-023", Note, "an unknown capability",
        Advice("no action is needed; readers ignore unknown capabilities");
    /// The store uses a capability that `format_capabilities` does not list.
    CAPABILITY_MISSING = "ZV-L2-024", Warning, "an undeclared capability",
        Repair("adds the token to the list");
    /// `format_capabilities` lists a capability that the store does not use.
    CAPABILITY_UNUSED = "ZV-L2-025", Warning, "an unused capability",
        Repair("removes the token from the list");
    /// The store holds links between levels that `cross_level_storage` and `cross_level_depth`
    /// exclude.
    CROSS_LEVEL = "ZV-L2-026", Warning, "undeclared links between levels",
        Advice("correct cross_level_storage and cross_level_depth, or delete the links");
    /// The types of the axes do not follow NGFF: time, channels, others, then at least two of
    /// space. Queries are unaffected; viewers refuse the store.
    AXES = "ZV-L2-027", Note, "axes that viewers do not accept",
        Advice("correct the types of the axes, but keep their order, which is that of coordinates");
    /// Two axes have the same name, so neither can be selected by it.
    AXIS_NAMES = "ZV-L2-028", Error, "two axes of one name",
        Advice("rename one of them in multiscales[0].axes");
    /// A level has no entry in `multiscales`, so its bins are unknown and viewers do not show it.
    DATASET_MISSING = "ZV-L2-029", Warning, "a level without an entry in multiscales",
        Advice("add an entry with scale and translation; repair adds the entry of level 0");
    /// `multiscales` has an entry for a level that does not exist.
    DATASET_WITHOUT_LEVEL = "ZV-L2-030", Warning, "an entry of multiscales without a level",
        Repair("removes the entry");
    /// The entries of `multiscales` do not ascend by level, as viewers expect.
    DATASET_ORDER = "ZV-L2-031", Note, "entries of multiscales out of order",
        Repair("sorts the entries by level");
    /// The transformations of a level contradict each other or the bins of level 0. Readers take
    /// the translation as half a bin.
    SCALE = "ZV-L2-032", Warning, "scale and translation do not match",
        Advice("correct the transformations: scale is the bin divided by that of level 0, translation is half a bin");
    /// The entry of `multiscales` lacks the fields by which viewers recognise the format.
    MULTISCALES = "ZV-L2-033", Note, "unusual multiscales",
        Advice("set version to \"0.4\" and metadata.format to \"zarr_vectors\"");
    /// The root has no `ome`, by which collections list the store.
    NO_OME = "ZV-L2-034", Warning, "no ome",
        Repair("writes the node from axes and levels");
    /// A field of `ome` is missing or malformed.
    OME = "ZV-L2-035", Warning, "a malformed ome",
        Repair("writes version, type, name and axes, and keeps all other fields");
    /// The nodes of `ome` are not the levels of the store.
    OME_NODES = "ZV-L2-036", Warning, "ome lists other levels",
        Repair("writes the nodes from the existing levels");
    /// No coordinate system of `ome` has the axes of `multiscales`.
    OME_AXES = "ZV-L2-037", Warning, "ome has other axes",
        Repair("copies the axes of multiscales");
    /// The levels are not numbered 0, 1, 2, …: one was lost or renamed.
    LEVELS = "ZV-L2-038", Error, "a level is missing",
        Advice("restore the level from a backup, or renumber the levels after it");
    /// The field `level` differs from the number in the path, or is missing. Readers follow the
    /// path.
    LEVEL_NUMBER = "ZV-L2-039", Warning, "a wrong level number",
        Repair("takes the number from the path");
    /// `parent_level` is missing, or names a level that is not finer or does not exist.
    PARENT = "ZV-L2-040", Warning, "a wrong parent level",
        Advice("set parent_level to the level from which this one was made");
    /// Chunks are split by an attribute whose name, values or dimensions are missing or
    /// contradictory, so chunks cannot be selected by value.
    CHUNK_ATTRIBUTE = "ZV-L2-041", Error, "chunks by an attribute that is not described",
        Advice("correct chunk_attribute_name, chunk_attribute_values and chunk_dims");
    /// A level makes false statements about its parent: ids inherited from a missing parent, or a
    /// wrong number of objects.
    INHERITED = "ZV-L2-042", Warning, "wrong statements about the parent level",
        Advice("write the level again; repair sets the number of objects of the parent");
    /// `zv_array` names another kind of node than the path does. Readers follow the path.
    TAG = "ZV-L2-043", Warning, "a wrong tag",
        Repair("sets the tag to the kind that the path implies");
    /// `zv_array` is missing. Readers follow the path.
    TAG_MISSING = "ZV-L2-044", Note, "no tag",
        Repair("sets the tag to the kind that the path implies");
    /// The data type of an array is not the one that its part requires, so the array cannot be
    /// read.
    ARRAY_TYPE = "ZV-L2-045", Error, "a wrong data type of an array",
        Advice("write the part again, or restore zarr.json from a backup");
    /// The chunks of an array differ from the chunks that its part requires, so cells cannot be read one by
    /// one.
    ARRAY_CHUNKS = "ZV-L2-046", Error, "wrong chunks of an array",
        Advice("write the part again, or restore zarr.json from a backup");
    /// The codec that turns values into bytes is missing, or belongs to another data type.
    ARRAY_CODECS = "ZV-L2-047", Error, "codecs do not match the data type",
        Advice("restore zarr.json from a backup");
    /// The fill value is not a value of the array's data type. Zarr readers refuse the array.
    ARRAY_FILL = "ZV-L2-048", Error, "the fill value does not match the data type",
        Advice("correct fill_value in zarr.json: \"\" for byte strings, text for text, a number for numbers");
    /// The shape of an array is not the one that its part requires, or differs from those of
    /// sibling arrays.
    ARRAY_SHAPE = "ZV-L2-049", Error, "a wrong shape of an array",
        Advice("write the part again, or restore zarr.json from a backup");
    /// A family of links does not state its width or the number of coordinates in a chunk key.
    /// Readers treat it as empty.
    LINK_POLICY = "ZV-L2-050", Error, "links without a policy",
        Advice("restore link_width and sid_ndim of the family; the names of its arrays show both");
    /// `sid_ndim` is neither the number of axes nor, where an attribute splits chunks, one more.
    ARITY = "ZV-L2-051", Error, "a wrong number of coordinates in a chunk key",
        Repair("sets sid_ndim to the length of chunk keys of the level");
    /// An array of links states other offsets, another width or another row form than its path and
    /// family.
    LINK_ARRAY = "ZV-L2-052", Error, "an array of links contradicts its path",
        Advice("correct the array or the policy of its family; repair sets offsets and width");
    /// The family is undirected and canonical, but an array has negative or descending offsets.
    /// Readers that look up a link by its canonical position do not find it.
    LINK_ORDER = "ZV-L2-053", Error, "links out of canonical order",
        Advice("write the links again");
    /// A family of links leads to a level that the store does not have.
    LINK_TARGET = "ZV-L2-054", Warning, "links to a level that does not exist",
        Advice("restore the level from a backup, or delete the links");
    /// An attribute of links has no links beside it.
    LINK_ATTRIBUTE_ORPHAN = "ZV-L2-055", Warning, "attributes of links that do not exist",
        Advice("delete the attribute, or restore the links from a backup");
    /// The codes of a categorical attribute cannot represent its categories.
    DICTIONARY = "ZV-L2-057", Error, "codes do not match the dictionary",
        Advice("correct categories and dtype");
    /// The number of channel names differs from the number of columns.
    CHANNELS = "ZV-L2-058", Warning, "a wrong number of channel names",
        Advice("correct channel_names or row_shape");
    /// `name` of an attribute differs from the name of its node. Readers follow the node's name.
    NAME_MISMATCH = "ZV-L2-059", Warning, "a wrong name",
        Repair("takes the name from the path");
    /// The name of an attribute has characters other than letters, digits and underscores, which
    /// programs may not accept.
    IDENTIFIER = "ZV-L2-060", Warning, "a name that is not an identifier",
        Advice("rename the attribute");
    /// `num_objects` differs from the number of rows of the index.
    OBJECT_COUNT = "ZV-L2-061", Error, "a wrong number of objects",
        Repair("sets num_objects to the number of rows, where manifests and ids agree");
    /// `shape` or `dtype` of a table differs from those of its array. Readers follow the array.
    TABLE_SHAPE = "ZV-L2-062", Warning, "a wrong statement about the shape of a table",
        Repair("copies shape and dtype from the array");
    /// An attribute of objects or groups does not have one row per object or group.
    TABLE_ROWS = "ZV-L2-063", Warning, "a wrong number of rows",
        Advice("write the attribute again, with one row per object or group");
    /// The values of a table are missing, or their number differs from its shape and type.
    TABLE_BYTES = "ZV-L2-064", Error, "values do not fill a table",
        Advice("restore the array from a backup, or correct shape and dtype");
    /// `num_groups` is missing, or differs from the number of stored groups.
    GROUP_COUNT = "ZV-L2-065", Error, "a wrong number of groups",
        Repair("sets num_groups to the number of stored groups");
    /// The types, rows and names of parametric objects contradict each other.
    PARAMETRIC = "ZV-L2-066", Error, "contradictory parametric objects",
        Advice("write the parametric objects again");
    /// `geometry_index` names a missing part, omits an existing one, or gives a wrong count.
    COMPOSITE = "ZV-L2-067", Error, "composite geometries differ from their index",
        Advice("correct geometry_index, or write the geometry again");
    /// An attribute of objects does not declare that rows holding the fill value are absent.
    /// Readers return such rows as values, although the format defines them as absent.
    FILL_MEANING = "ZV-L2-068", Warning, "undeclared absent values",
        Advice("set fill_sentinel_meaning to \"absent\", unless such rows are values");
    /// The node copy in the root, `zvf_nodes`, is malformed, names missing nodes, omits nodes, or
    /// differs from one. Readers over the network use it and miss changes that were made without
    /// it.
    NODE_COPY = "ZV-L2-069", Error, "the node copy differs from the nodes",
        Repair("writes a new copy if nodes are missing in it; restore other nodes from a backup, or repair with --trust-files if another program changed them");
    /// The node copy in the root belongs to another transaction than the last. Readers ignore it.
    NODE_COPY_BEHIND = "ZV-L2-070", Warning, "the node copy is out of date",
        Repair("rewrites the copy from the nodes");
    /// `required_capabilities` lists a capability that this version does not implement. Readers
    /// refuse the store, because their results would be incomplete.
    REQUIRED_CAPABILITY = "ZV-L2-071", Error, "an unknown required capability",
        Advice("read and validate the store with a newer version");
    /// `refinement` declares that the next coarser level holds the rest of a level, but that level
    /// does not exist. The level cannot be read.
    ADDITIVE_REST = "ZV-L2-072", Error, "the rest of an additive level is missing",
        Advice("restore the coarser level from a backup");
    /// A level is additive, but `required_capabilities` does not list `additive_levels`. Readers that
    /// do not know additive levels open the store and return a part of its content.
    ADDITIVE_UNDECLARED = "ZV-L2-073", Error, "undeclared additive levels",
        Repair("adds additive_levels to required_capabilities");
    /// `zarr_vectors_presence` declares that a level is being built, so that its arrays do not list
    /// their chunks. Readers refuse the level.
    UNFINISHED_LEVEL = "ZV-L2-074", Error, "an unfinished level",
        Advice("finish writing the level, or delete it if its writer was interrupted");
    /// A node of 0.10 lacks an entry in `zarr_conventions`, by which readers recognise it.
    CONVENTION = "ZV-L2-075", Error, "an undeclared convention",
        Repair("adds the entry to zarr_conventions");
    /// An array of 0.10 has no `nonempty_chunks`. Readers take its chunks from the store, which needs
    /// a listing.
    PRESENCE_DEFERRED = "ZV-L2-076", Warning, "an array that does not list its chunks",
        Advice("write the list; a change of the level by zvf writes it as well");
}
