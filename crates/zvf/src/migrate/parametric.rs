//! Migration of parametric objects.

use serde_json::Value;
use zvf_build::NumericColumn;
use zvf_format::numeric::Kind;
use zvf_query::Column;

use super::Migration;
use crate::failure::Failure;

impl Migration<'_> {
    /// Migrates parametric objects with their attributes and groups.
    pub(super) async fn parametric(&self) -> Result<(), Failure> {
        let read = self.session().parametric().await;
        let Some(Some(parametric)) = self.skip_damaged(read)? else {
            return Ok(());
        };
        let group = self.attributes("parametric").await?;
        let objects = self.attributes("parametric/objects").await?;
        let names = self.attributes("parametric/names").await?;
        let longest = parametric.objects.iter().map(|object| {
            let coefficients = u32::try_from(object.coefficients.len());
            coefficients.map_or(u32::MAX, |count| count.saturating_add(1))
        });
        let declared = objects.get("max_row_length").and_then(Value::as_u64);
        let declared = declared.and_then(|columns| u32::try_from(columns).ok());
        let columns = longest.max().unwrap_or(1).max(declared.unwrap_or(1));
        let mut numbers = NumericColumn::new(Kind::Float64, columns);
        for object in &parametric.objects {
            let row = [type_number(object.type_id)].into_iter();
            let row = row.chain(object.coefficients.iter().map(|own| own.value));
            let row = row
                .chain(core::iter::repeat(f64::NAN))
                .take(numbers.row_len());
            numbers.bytes.extend(row.flat_map(f64::to_le_bytes));
        }
        let called = parametric.objects.iter().map(|object| object.name.clone());
        let called: Option<Vec<String>> = called.collect();
        let old = [&group, &objects, &names];
        self.writer
            .write(self.form.parametric(old, &numbers, called.as_deref())?)
            .await?;
        if let Some(groups) = &parametric.groups {
            let (members, ranges) = self.members(groups)?;
            let path = "parametric/groups";
            let old = self.attributes(path).await?;
            self.writer
                .write(self.form.groups(path, &old, false, &members, &ranges)?)
                .await?;
        }
        self.columns("object_attributes", parametric.attributes)
            .await?;
        self.columns("group_attributes", parametric.group_attributes)
            .await
    }

    async fn columns(&self, folder: &str, columns: Option<Vec<Column>>) -> Result<(), Failure> {
        for column in columns.unwrap_or_default() {
            let folder = format!("parametric/{folder}");
            self.parent(&folder).await?;
            let path = format!("{folder}/{}", column.name);
            let old = self.attributes(&path).await?;
            self.plain_attribute(&path, None, &old, column).await?;
        }
        Ok(())
    }
}

/// Returns the number of a type as a row stores it.
#[expect(
    clippy::cast_precision_loss,
    reason = "it was read from a float, and whole"
)]
fn type_number(type_id: u64) -> f64 {
    type_id as f64
}
