//! Errors of NIfTI files.

/// An error in a NIfTI file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NiftiError {
    /// The file does not start with a header of NIfTI-1 or NIfTI-2.
    #[error("does not start with a NIfTI-1 or NIfTI-2 header")]
    Header,
    /// The file holds a header only, with the voxels in another file.
    #[error("keeps its voxels in a separate .img file; save it as one .nii file")]
    Pair,
    /// The shape is invalid.
    #[error("has an invalid shape")]
    Shape,
    /// The element type is not supported.
    #[error("has voxels of NIfTI datatype {0}; only integers and floats of 8 to 64 bits are read")]
    Datatype(i16),
    /// The offset of the voxels is no number of bytes, or within the header.
    #[error("has an invalid offset of the voxels, `vox_offset`; save the volume again")]
    Offset,
    /// The file ends before the last voxel.
    #[error("has {found} bytes, but its header requires {needed}")]
    Size {
        /// Bytes that the header implies.
        needed: u64,
        /// Bytes in the file, after decompression.
        found: u64,
    },
    /// The map from voxels to positions cannot be inverted.
    #[error(
        "has a {0} that cannot be inverted; give the map from positions to voxels (zvf sample \
         --affine) or the size of voxels (zvf serve --voxel-size)"
    )]
    Singular(&'static str),
}
