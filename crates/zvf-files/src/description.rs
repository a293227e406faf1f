//! Description of a file: everything but its geometry.

use std::collections::BTreeMap;

use serde_json::Value;
use zvf::{AttributeDeclarations, AxisSpec, Column, Design, GeometryKind, ObjectGroup};

use crate::{FileFormat, FileHeader, StoreDescription};

/// Maximum size in bytes of the text of a header that a store keeps. A node of a store has at most
/// 64 MiB, and some bytes of a text take six characters in it.
pub(crate) const MAX_HEADER_TEXT: usize = 8 << 20;

/// Description of a file that is read: everything except the geometry.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileDescription {
    /// The format.
    pub format: FileFormat,
    /// Kind of the geometry.
    pub kind: GeometryKind,
    /// Axes with their types and units.
    pub axes: Vec<AxisSpec>,
    /// Coordinate reference system.
    pub crs: Option<Value>,
    /// True if links have a direction.
    pub directed: bool,
    /// True if the file has no ids of objects, so that its reader numbers them from 0.
    pub numbers_objects: bool,
    /// Descriptions of attributes.
    pub attributes: AttributeDeclarations,
    /// Header, from which the same file can be written again. An empty one still tells the format of
    /// the file.
    pub header: FileHeader,
    /// Size of the geometry in bytes, at least approximately.
    pub bytes: u64,
    /// Differences between the file and the geometry, one line each.
    pub notes: Vec<String>,
}

impl FileDescription {
    /// Creates a description without axes, header and notes.
    pub(crate) fn new(format: FileFormat, kind: GeometryKind) -> Self {
        Self {
            format,
            kind,
            axes: Vec::new(),
            crs: None,
            directed: false,
            numbers_objects: matches!(
                format,
                FileFormat::Trk
                    | FileFormat::Tck
                    | FileFormat::Trx
                    | FileFormat::Swc
                    | FileFormat::Obj
                    | FileFormat::Stl
                    | FileFormat::Glb
                    | FileFormat::Gii
                    | FileFormat::FreeSurfer
            ),
            attributes: AttributeDeclarations::new(),
            header: FileHeader::new(),
            bytes: 0,
            notes: Vec::new(),
        }
    }

    /// Sets spatial axes x, y and z with a unit.
    pub(crate) fn axes_xyz(mut self, unit: Option<&str>) -> Self {
        self.axes = ["x", "y", "z"].map(AxisSpec::new).to_vec();
        for axis in &mut self.axes {
            axis.unit = unit.map(str::to_owned);
        }
        self
    }

    /// Describes an attribute.
    pub(crate) fn describe(&mut self, scope: &str, name: &str, text: &str) {
        let attributes = self.attributes.entry(scope.to_owned()).or_default();
        let declared = attributes.entry(name.to_owned()).or_default();
        declared.insert("description".to_owned(), text.into());
    }

    /// Completes a design: what the design leaves open is taken from the file.
    pub fn complete(&self, design: &mut Design) {
        if design.axes.is_none() && !self.axes.is_empty() {
            design.axes = Some(self.axes.clone());
        }
        if design.crs.is_none() {
            design.crs = self.crs.clone().map(Into::into);
        }
        design.directed |= self.directed;
        if design.attribute_specs.is_empty() {
            design.attribute_specs.clone_from(&self.attributes);
        }
        if design.headers.is_empty() {
            let name = self.format.header_name().to_owned();
            design.headers = BTreeMap::from([(name, self.header.clone())]).into();
        }
    }
}

impl From<&FileDescription> for StoreDescription {
    fn from(of: &FileDescription) -> Self {
        let mut description = Self::new(of.kind.name());
        description.axes.clone_from(&of.axes);
        description.crs.clone_from(&of.crs);
        description.directed = of.directed;
        description.attributes.clone_from(&of.attributes);
        let name = of.format.header_name().to_owned();
        description.headers.insert(name, of.header.clone());
        description
    }
}

/// Groups of the objects in a result.
#[derive(Clone, Debug, Default)]
pub struct GroupTables {
    /// Members of the groups.
    pub groups: Vec<ObjectGroup>,
    /// Attributes of groups, one row per group number from 0.
    pub columns: Vec<Column>,
}
