//! Migration of parametric objects.

use serde_json::Value;
use zvf_build::NumericColumn;
use zvf_dataset::{Failure, nodes::place};
use zvf_format::numeric::Kind;
use zvf_model::{key::Key, layout::RootArrayRole};
use zvf_query::Column;

use super::{Migration, objects::described};

impl Migration<'_> {
    /// Migrates parametric objects with their attributes and groups.
    pub(super) async fn parametric(&self) -> Result<(), Failure> {
        let read = self.catalog().parametric().await;
        let Some(Some(parametric)) = self.skip_damaged(read)? else {
            return Ok(());
        };
        let layout = self.form.profile().layout();
        let key = |part: RootArrayRole<'_>| place(layout.root_node(&part));
        let group = self.attributes(&key(RootArrayRole::Parametric)?).await?;
        let objects = key(RootArrayRole::ParametricObjects)?;
        let objects = self.attributes(&objects).await?;
        let names = key(RootArrayRole::ParametricNames)?;
        let names = self.attributes(&names).await?;
        let longest = parametric.objects.iter().map(|object| {
            let coefficients = u32::try_from(object.coefficients.len());
            coefficients.map_or(u32::MAX, |count| count.saturating_add(1))
        });
        let declared = objects
            .get("max_row_length")
            .and_then(Value::as_u64)
            .and_then(|columns| u32::try_from(columns).ok());
        let columns = longest.max().unwrap_or(1).max(declared.unwrap_or(1));
        let mut numbers = NumericColumn::new(Kind::Float64, columns);
        for object in &parametric.objects {
            let row = [type_number(object.type_id)]
                .into_iter()
                .chain(object.coefficients.iter().map(|own| own.value))
                .chain(core::iter::repeat(f64::NAN))
                .take(numbers.row_len());
            numbers.bytes.extend(row.flat_map(f64::to_le_bytes));
        }
        let called: Option<Vec<String>> = parametric
            .objects
            .iter()
            .map(|object| object.name.clone())
            .collect();
        let old = [&group, &objects, &names];
        self.writer
            .write(self.form.parametric(old, &numbers, called.as_deref())?)
            .await?;
        if let Some(groups) = &parametric.groups {
            let (members, ranges) = self.members(groups)?;
            let key = key(RootArrayRole::ParametricGroups)?;
            let old = self.attributes(&key).await?;
            let groups = described(false, &members, ranges);
            self.writer
                .write(self.form.groups(&key, &old, &groups, &members)?)
                .await?;
        }
        for column in parametric.attributes.unwrap_or_default() {
            let key = key(RootArrayRole::ParametricAttribute(&column.name))?;
            self.column(&key, column).await?;
        }
        for column in parametric.group_attributes.unwrap_or_default() {
            let key = key(RootArrayRole::ParametricGroupAttribute(&column.name))?;
            self.column(&key, column).await?;
        }
        Ok(())
    }

    async fn column(&self, key: &Key, column: Column) -> Result<(), Failure> {
        if let Some(folder) = key.parent() {
            self.parent(&folder).await?;
        }
        let old = self.attributes(key).await?;
        self.plain_attribute(key, None, &old, column).await?;
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
