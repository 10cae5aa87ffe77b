//! Connections to Redis that reconnect, and the format number of the stored data.

use std::time::Duration;

use redis::{Client, RedisResult, aio::ConnectionManager, aio::ConnectionManagerConfig};

/// The maximum time to connect, and the maximum time to wait for an answer of the server.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn connect(client: &Client) -> RedisResult<ConnectionManager> {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE))
        .set_max_delay(Duration::from_secs(1));
    client.get_connection_manager_with_config(config).await
}

/// Returns the prefix of all Redis keys of the bus or index with this name.
pub(crate) fn prefix(name: &str) -> String {
    format!("{{{name}}}:")
}

/// Stores `ours` as the format of the data under `prefix` if none is stored, and returns the stored format.
pub(crate) async fn format_of(
    connection: &mut ConnectionManager,
    prefix: &str,
    ours: u32,
) -> RedisResult<u32> {
    let key = format!("{prefix}format");
    let mut both = redis::pipe();
    both.atomic().cmd("SETNX").arg(&key).arg(ours).ignore().cmd("GET").arg(&key);
    let (found,): (u32,) = both.query_async(connection).await?;
    Ok(found)
}
