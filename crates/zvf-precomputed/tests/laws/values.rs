//! Invariants of skeletons, legacy meshes, single annotations and info documents for arbitrary bytes,
//! used by the damage test and the fuzz target `precomputed_values`.

use zvf_precomputed::{
    AnnotationInfo, AnnotationKind, AttributeType, LegacyMeshFragment, LegacyMeshInfo,
    LegacyMeshManifest, MultilodMeshInfo, PropertySpec, PropertyType, RecordLayout,
    SegmentProperties, Skeleton, SkeletonInfo, VertexAttribute,
};

/// Types of properties that a byte selects.
const TYPES: [PropertyType; 4] = [
    PropertyType::Float32,
    PropertyType::Uint16,
    PropertyType::Uint8,
    PropertyType::Rgb,
];

/// Checks that what is decoded is encoded to the same bytes, and that documents that are read are
/// written in a form that is read as the same. The first byte selects attributes and layouts. Returns
/// the number of decoders that accept the bytes.
pub(crate) fn values(bytes: &[u8]) -> u32 {
    let [choice, bytes @ ..] = bytes else {
        return 0;
    };
    let found = [
        skeleton(*choice, bytes),
        mesh(bytes),
        single(*choice, bytes),
        documents(bytes),
    ];
    found.into_iter().map(u32::from).sum()
}

fn skeleton(choice: u8, bytes: &[u8]) -> bool {
    let attributes: Vec<VertexAttribute> = (0..choice & 3)
        .map(|at| VertexAttribute {
            id: format!("a{at}"),
            data_type: match (choice >> 2 ^ at) & 3 {
                0 => AttributeType::Float32,
                1 => AttributeType::Uint8,
                2 => AttributeType::Int16,
                _ => AttributeType::Uint32,
            },
            components: u32::from(at) + 1,
        })
        .collect();
    let Ok(skeleton) = Skeleton::decode(bytes, &attributes) else {
        return false;
    };
    assert_eq!(skeleton.encode(&attributes).as_deref(), Ok(bytes));
    true
}

fn mesh(bytes: &[u8]) -> bool {
    let Ok(mesh) = LegacyMeshFragment::decode(bytes) else {
        return false;
    };
    assert_eq!(mesh.encode().as_deref(), Ok(bytes));
    true
}

fn single(choice: u8, bytes: &[u8]) -> bool {
    let kinds = AnnotationKind::ALL;
    let kind = kinds[usize::from(choice) % kinds.len()];
    let properties: Vec<PropertySpec> = TYPES
        .into_iter()
        .zip(0_u8..)
        .filter(|(_, at)| choice >> 4 & (1 << at) != 0)
        .map(|(kind, _)| PropertySpec {
            kind,
            ..PropertySpec::default()
        })
        .collect();
    let layout = RecordLayout::new(kind, usize::from(choice & 3) + 1, &properties);
    let relationships = usize::from(choice >> 7);
    let Ok((annotation, related)) = layout.decode_single(bytes, relationships) else {
        return false;
    };
    assert_eq!(related.len(), relationships);
    let again = layout.encode_single(&annotation, &related);
    // Padding is not kept.
    assert_eq!(again.map(|again| again.len()), Ok(bytes.len()));
    true
}

fn documents(bytes: &[u8]) -> bool {
    let mut is_document = false;
    if let Ok(info) = AnnotationInfo::parse(bytes) {
        // Labels of integers lose fractions.
        let again = AnnotationInfo::parse(info.to_json().as_bytes());
        assert_eq!(again.map(|again| again.spatial).ok(), Some(info.spatial));
        is_document = true;
    }
    if let Ok(info) = SkeletonInfo::parse(bytes) {
        let again = SkeletonInfo::parse(info.to_json().as_bytes());
        assert_eq!(again.ok(), Some(info));
        is_document = true;
    }
    if let Ok(info) = MultilodMeshInfo::parse(bytes) {
        let again = MultilodMeshInfo::parse(info.to_json().as_bytes());
        assert_eq!(again.ok(), Some(info));
        is_document = true;
    }
    if let Ok(info) = LegacyMeshInfo::parse(bytes) {
        let again = LegacyMeshInfo::parse(info.to_json().as_bytes());
        assert_eq!(again.ok(), Some(info));
        is_document = true;
    }
    if let Ok(manifest) = LegacyMeshManifest::parse(bytes) {
        let again = LegacyMeshManifest::parse(manifest.to_json().as_bytes());
        assert_eq!(again.ok(), Some(manifest));
        is_document = true;
    }
    if let Ok(segments) = SegmentProperties::parse(bytes) {
        if let Some(json) = segments.to_json() {
            assert!(SegmentProperties::parse(json.as_bytes()).is_ok());
        }
        is_document = true;
    }
    is_document
}
