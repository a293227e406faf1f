//! Opens the parts that hold the links of a delta.

use zvf_format::{
    fragment::FragmentIndex,
    links::{AxisScales, LinkWidth, RowForm},
    numeric::{ByteOrder, Dtype, Kind},
    path::{Delta, Offsets},
};
use zvf_model::{
    array::{LinkArray, LinkFamily, LinkStore, Padded, VertexNumbering, VertexPairs},
    key::Key,
    layout::{ArrayRole, CrossChunkForm, LinkForm, LinkOffsets},
    metadata::{Attributes, MetadataError, Noted},
    zarr::{Array, Node},
};

use super::{EndChunks, LinkEncoding, LinkPart, LinkParts, LinkStorage};
use crate::{
    batch,
    chunked_part::{CellStorage, ChunkedPart, open_array, open_part},
    context::Context,
    node_role::may_be_pairs,
    rules::consistency as rules,
    store::{LevelNode, LevelScope, StoreMetadata},
};

/// Opens all parts of a delta. Reports parts that cannot be opened.
pub(crate) async fn open(context: &Context<'_>, scope: LevelScope<'_>, delta: Delta) -> LinkParts {
    let mut found = parts(context, scope, delta);
    for part in &mut found.parts {
        if let EndChunks::Numbered(numbering) = &mut part.ends {
            *numbering = numbered(context, scope).await;
        }
    }
    found
}

/// Numbers the vertices of a level by the fragments of its chunks.
async fn numbered(context: &Context<'_>, scope: LevelScope<'_>) -> VertexNumbering {
    let Some(fragments) = open_part(context, scope, &ArrayRole::VertexFragments) else {
        return VertexNumbering::default();
    };
    let mut rows = Vec::new();
    // Unreadable fragments are reported with their chunks.
    let context = &context.silent();
    batch::each_chunk(
        context,
        &[&fragments],
        &fragments.chunks(),
        |chunk, cells| {
            let bytes = cells.first().and_then(|cell| cell.bytes());
            let index = bytes.and_then(|bytes| FragmentIndex::parse(bytes).ok());
            rows.push((chunk.clone(), index.map_or(0, |index| index.extent())));
        },
    )
    .await;
    VertexNumbering::new(rows)
}

/// Returns the array of links between chunks as pairs of numbered vertices, if the level has one.
pub(super) fn pairs<'a>(store: &'a StoreMetadata, level: &LevelNode) -> Option<(Key, &'a Array)> {
    let key = level.key.join("cross_chunk_links").ok()?;
    let array = store.tree.array(&key)?;
    may_be_pairs(*store.layout(), &key).then_some((key, array))
}

fn parts(context: &Context<'_>, scope: LevelScope<'_>, delta: Delta) -> LinkParts {
    let opening = Opening {
        context,
        scope,
        delta,
    };
    let mut found = LinkParts {
        families: Vec::new(),
        parts: Vec::new(),
        is_whole: true,
    };
    let done = match scope.store.layout().links {
        LinkForm::PerOffsets => opening.arrays(&mut found),
        LinkForm::PerDelta => {
            let inside = opening.inside(&mut found);
            let between = opening.between(&mut found);
            opening.compare(&found.parts);
            inside.and(between)
        }
    };
    found.is_whole = done.is_some();
    found
}

struct Opening<'a, 'c> {
    context: &'a Context<'c>,
    scope: LevelScope<'a>,
    delta: Delta,
}

/// `None` after reporting a part that cannot be opened.
type OpenOutcome = Option<()>;

/// The policy is unusable, which is reported.
struct Unusable;

impl Opening<'_, '_> {
    fn at(&self, part: &ArrayRole<'_>) -> Option<Key> {
        self.scope.store.at(self.scope.level, part)
    }

    /// Returns the attributes of a group that describes links. Returns `None` after reporting that
    /// the node is unreadable or not a group.
    fn group(&self, key: &Key) -> Option<Attributes> {
        let tree = &self.scope.store.tree;
        match tree.node(key) {
            Some(Node::Array(_)) => {
                let message = "an array where links need a group";
                self.context.report(&rules::LINK_NOT_CHECKED, key, message);
                None
            }
            Some(node) => Some(node.attributes().clone()),
            None if tree.has_file(key) => {
                let message = "its zarr.json cannot be read";
                self.context.report(&rules::LINK_NOT_CHECKED, key, message);
                None
            }
            None => Some(Attributes::new()),
        }
    }

    /// Returns the policy, or `None` if neither a policy nor links exist.
    fn family(
        &self,
        key: &Key,
        parsed: Result<Noted<Option<LinkFamily>>, MetadataError>,
        has_links: bool,
    ) -> Result<Option<LinkFamily>, Unusable> {
        let family = match parsed {
            Ok(parsed) => parsed.value,
            Err(error) => {
                let rule = &rules::LINK_NOT_CHECKED;
                self.context.report_at(rule, key, &error.path, &error.fault);
                return Err(Unusable);
            }
        };
        let Some(family) = family else {
            if has_links {
                let message = "link_width or sid_ndim is missing, so readers see no links";
                self.context.report(&rules::LINK_NOT_CHECKED, key, message);
                return Err(Unusable);
            }
            return Ok(None);
        };
        let arity = self.scope.level.arity;
        let found = family.sid_ndim.unwrap_or(arity);
        if found != arity {
            let message = format!("{found}, but chunk keys have {arity} coordinates");
            let path = "attributes.sid_ndim";
            self.context
                .report_at(&rules::LINK_NOT_CHECKED, key, path, message);
            return Err(Unusable);
        }
        Ok(Some(family))
    }

    /// Returns the ratios between the chunk grids of this level and of the level at the other ends.
    fn scales(&self, key: &Key) -> Option<Vec<AxisScales>> {
        let LevelScope {
            store,
            root,
            level,
            metadata,
        } = self.scope;
        if self.delta == Delta::INTRA {
            return Some(vec![AxisScales::EQUAL; level.arity]);
        }
        let target = level
            .id
            .offset(self.delta.levels())
            .and_then(|id| store.level(id)?.metadata.as_ref());
        let Some(target) = target else {
            let message = "the target level does not exist, or its metadata cannot be used";
            self.context.report(&rules::LINK_NOT_CHECKED, key, message);
            return None;
        };
        match metadata.link_scales(target, root) {
            Ok(scales) => Some(scales),
            Err(error) => {
                self.context.report(&rules::LINK_NOT_CHECKED, key, error);
                None
            }
        }
    }

    /// Opens the arrays of 0.9.
    fn arrays(&self, found: &mut LinkParts) -> OpenOutcome {
        let key = self.at(&ArrayRole::LinkFamily(self.delta))?;
        let tree = &self.scope.store.tree;
        if !tree.exists(&key) {
            return Some(());
        }
        let attributes = self.group(&key)?;
        let segments = tree.folders(&key);
        let parsed = LinkFamily::parse(&key, self.delta, &attributes);
        let Some(family) = self.family(&key, parsed, !segments.is_empty()).ok()? else {
            return Some(());
        };
        found.families.push((key.clone(), family.clone()));
        let scales = self.scales(&key)?;
        let mut done = Some(());
        for segment in segments {
            let Ok(array) = key.join(segment) else {
                continue;
            };
            match self.array(&key, &array, segment, &family, &scales) {
                Some(part) => found.parts.push(part),
                None => done = None,
            }
        }
        done
    }

    fn array(
        &self,
        family_key: &Key,
        key: &Key,
        segment: &str,
        family: &LinkFamily,
        scales: &[AxisScales],
    ) -> Option<LinkPart> {
        let (context, arity) = (self.context, scales.len());
        let tree = &self.scope.store.tree;
        let offsets = match Offsets::parse(segment, family.width, arity) {
            Ok(offsets) => offsets,
            Err(error) => {
                context.report(&rules::LINK_NOT_CHECKED, key, error);
                return None;
            }
        };
        let Some(array) = tree.array(key) else {
            context.report(&rules::LINK_NOT_CHECKED, key, "not a readable array");
            return None;
        };
        let array = match LinkArray::parse(key, segment, &array.attributes, family) {
            Ok(array) => array.value,
            Err(error) => {
                let rule = &rules::LINK_NOT_CHECKED;
                context.report_at(rule, key, &error.path, &error.fault);
                return None;
            }
        };
        let part = ArrayRole::Links(self.delta, LinkOffsets::Segment(segment));
        let form = self.scope.store.layout().chunk_form(&part)?;
        let cells = ChunkedPart::open(context, tree, key, form, arity)?;
        let is_inside = self.delta == Delta::INTRA && offsets.is_zero();
        Some(LinkPart {
            key: key.clone(),
            family_key: family_key.clone(),
            family: family.clone(),
            is_inside,
            segment: Some(segment.to_owned()),
            cells: LinkStorage::Each(cells),
            form: if is_inside {
                LinkEncoding::Flat(array.dtype)
            } else {
                LinkEncoding::Groups(array.dtype, array.row_form)
            },
            ends: EndChunks::Offsets(
                offsets.iter().map(Iterator::collect).collect(),
                scales.to_vec(),
            ),
        })
    }

    /// Opens links up to 0.8.1 whose ends are in chunks of equal coordinates.
    fn inside(&self, found: &mut LinkParts) -> OpenOutcome {
        let part = ArrayRole::Links(self.delta, LinkOffsets::Segment("self"));
        let layout = self.scope.store.layout();
        let (key, form) = (self.at(&part)?, layout.chunk_form(&part)?);
        let (tree, arity) = (&self.scope.store.tree, self.scope.level.arity);
        if !tree.exists(&key) {
            return Some(());
        }
        let cells = ChunkedPart::open(self.context, tree, &key, form, arity)?;
        let has_links = match &cells.form {
            CellStorage::Padded { .. } => true,
            _ => !cells.chunks().is_empty(),
        };
        let parsed = LinkFamily::parse_intra(&key, self.delta, &cells.attributes);
        let Some(family) = self.family(&key, parsed, has_links).ok()? else {
            return Some(());
        };
        found.families.push((key.clone(), family.clone()));
        self.scales(&key)?;
        let form = match &cells.form {
            CellStorage::Padded { padded, .. } => self.padded(&key, padded, &family)?,
            _ if self.delta == Delta::INTRA && self.has_link_fragments() => {
                LinkEncoding::Flat(int64())
            }
            _ if self.delta == Delta::INTRA => LinkEncoding::MaybeGroups,
            _ => LinkEncoding::Groups(int64(), RowForm::Plain),
        };
        found.parts.push(LinkPart {
            family_key: key.clone(),
            key,
            family,
            is_inside: self.delta == Delta::INTRA,
            segment: None,
            cells: LinkStorage::Each(cells),
            form,
            ends: EndChunks::Same,
        });
        Some(())
    }

    fn has_link_fragments(&self) -> bool {
        let key = self.at(&ArrayRole::LinkFragments);
        let tree = &self.scope.store.tree;
        key.is_some_and(|key| !tree.folders(&key).is_empty())
    }

    fn padded(&self, key: &Key, padded: &Padded, family: &LinkFamily) -> Option<LinkEncoding> {
        let width = u64::try_from(family.width.get()).unwrap_or(u64::MAX);
        if padded.columns == width {
            return Some(LinkEncoding::Padded(padded.kind));
        }
        let found = padded.columns;
        let message = format!("{found} columns for links of {width} ends");
        self.context.report(&rules::LINK_NOT_CHECKED, key, message);
        None
    }

    /// Opens links up to 0.8.1 between any chunks.
    fn between(&self, found: &mut LinkParts) -> OpenOutcome {
        let pairs = pairs(self.scope.store, self.scope.level);
        if let Some((key, array)) = pairs.filter(|_| self.delta == Delta::INTRA) {
            return self.pairs(key, array, found);
        }
        let key = self.at(&ArrayRole::CrossChunkLinks(self.delta))?;
        let (tree, arity) = (&self.scope.store.tree, self.scope.level.arity);
        if !tree.exists(&key) {
            return Some(());
        }
        let attributes = self.group(&key)?;
        let is_table = self.scope.store.layout().cross_chunk == CrossChunkForm::Table;
        let has_links = !tree.folders(&key).is_empty();
        let parsed = LinkFamily::parse_cross_chunk(&key, self.delta, &attributes);
        let Some(family) = self.family(&key, parsed, has_links).ok()? else {
            return Some(());
        };
        found.families.push((key.clone(), family.clone()));
        self.scales(&key)?;
        let (cells, form, ends) = if is_table {
            let data = key.join("data").ok()?;
            (
                LinkStorage::Table(data),
                LinkEncoding::Table,
                EndChunks::Named(arity),
            )
        } else {
            let numbers = family.width.get().saturating_mul(arity);
            let form = zvf_model::layout::ChunkForm::Child;
            let cells = ChunkedPart::open(self.context, tree, &key, form, numbers)?;
            (
                LinkStorage::Each(cells),
                LinkEncoding::Records,
                EndChunks::Keyed(arity),
            )
        };
        found.parts.push(LinkPart {
            family_key: key.clone(),
            key,
            family,
            is_inside: false,
            segment: None,
            cells,
            form,
            ends,
        });
        Some(())
    }

    /// Opens links between chunks as pairs of numbered vertices, whose numbers come later.
    fn pairs(&self, key: Key, array: &Array, found: &mut LinkParts) -> OpenOutcome {
        let pairs = match VertexPairs::parse(&key, array) {
            Ok(pairs) => pairs,
            Err(error) => {
                let rule = &rules::LINK_NOT_CHECKED;
                self.context
                    .report_at(rule, &key, &error.path, &error.fault);
                return None;
            }
        };
        let cells = open_array(self.context, &key, array)?;
        let family = LinkFamily {
            delta: self.delta,
            width: LinkWidth::EDGE,
            directed: false,
            store: LinkStore::Canonical,
            sid_ndim: None,
            num_links: None,
            num_physical_records: None,
        };
        found.parts.push(LinkPart {
            family_key: key.clone(),
            key,
            family,
            is_inside: false,
            segment: None,
            cells: LinkStorage::Pairs(cells),
            form: LinkEncoding::Pairs(pairs),
            ends: EndChunks::Numbered(VertexNumbering::default()),
        });
        Some(())
    }

    /// Reports links inside chunks and between chunks of different widths.
    fn compare(&self, parts: &[LinkPart]) {
        if let [first, second] = parts
            && first.width() != second.width()
        {
            let (one, other) = (first.width().get(), second.width().get());
            let message = format!("links of {other} ends, but of {one} inside chunks");
            let path = "attributes.link_width";
            self.context
                .report_at(&rules::LINK_WIDTHS, &second.key, path, message);
        }
    }
}

/// Type of link rows, unless an array declares another.
fn int64() -> Dtype {
    Dtype::new(Kind::Int64, ByteOrder::Little)
}
