//! The requests of the protocol that the server answers.

use archon_types::RunId;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, GetTaskParams, GetTaskResult,
        Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
        UpdateTaskParams,
    },
    service::RequestContext,
};

use crate::{call::Call, server::ToolServer, task::internal};

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = match self.offers_agents() {
            true => ServerCapabilities::builder().enable_tools().enable_tasks().build(),
            false => ServerCapabilities::builder().enable_tools().build(),
        };
        let us = Implementation::new("archon", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(us)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.listed()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.listed().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _under_way = self.calls.token();
        let call = Call::new(self, &request, context)?;
        call.answer(request).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let run = RunId::new(request.task_id);
        self.task_log(&run).await?;
        Ok(GetTaskResult::new(self.task(&run).await.map_err(internal)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.answer_task(&RunId::new(request.task_id), request.input_responses).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.cancel_task_run(&RunId::new(request.task_id)).await
    }
}
