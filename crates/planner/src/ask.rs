//! Sends one request to a model, waits for the complete answer, and adds the cost.

use std::sync::Arc;

use archon_types::{
    ApiErrorKind, AssistantMessage, Context, FallbackModel, Lease, Message, ModelEvent, ModelPrice,
    PlanError, PlanningContext, Provider, ProviderError, Request, RequestOptions, Spending, SpendingCounter,
    StopReason, TokenCounter, TokenEstimate,
};
use futures_util::StreamExt;

/// A model that answers single requests, and its price.
pub(crate) struct Asked {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) model: String,
    pub(crate) price: Option<ModelPrice>,
    /// Fallback models that the provider may ask instead.
    pub(crate) others: Vec<FallbackModel>,
}

/// Assumed maximum number of tokens of an answer if a request sets no limit.
const ASSUMED_OUTPUT: u64 = 4_096;

impl Asked {
    pub(crate) fn new(provider: Arc<dyn Provider>, model: impl Into<String>) -> Self {
        Self { provider, model: model.into(), price: None, others: Vec::new() }
    }

    /// Returns true if the provider declares the model as small.
    pub(crate) fn is_small(&self) -> bool {
        self.provider.capabilities(&self.model).is_small
    }

    /// Returns a request to the model, without a system prompt and tools.
    pub(crate) fn request(&self, messages: Vec<Message>, options: RequestOptions) -> Request {
        let mut request = Request::new(self.model.clone(), messages);
        request.options = Arc::new(options);
        request
    }

    /// Sends a request like [`ask`](Self::ask), with the budget and the expenses of `context`.
    pub(crate) async fn ask_in(
        &self,
        request: Request,
        context: &PlanningContext,
    ) -> Result<AssistantMessage, PlanError> {
        self.ask(request, context.budget, &context.expenses, &context.run).await
    }

    /// Sends a request once and adds its cost to `expenses`. Fails without sending it if it may cost more
    /// than `expenses` leaves of `budget`.
    pub(crate) async fn ask(
        &self,
        request: Request,
        budget: Option<Lease>,
        expenses: &SpendingCounter,
        context: &Context,
    ) -> Result<AssistantMessage, PlanError> {
        let own = self.price.or_else(|| self.provider.capabilities(&self.model).price);
        let others = || self.others.iter().map(|other| (other.model.as_str(), other.price));
        let prices = || std::iter::once((self.model.as_str(), own)).chain(others());
        let at_most = prices().map(|(_, price)| at_most(&request, price.as_ref())).max().unwrap_or_default();
        let unknown = prices().find(|(_, price)| price.is_none()).map(|(model, _)| model);
        check(at_most, unknown, budget, expenses)?;
        let answer = ask(&*self.provider, request, context).await.map_err(|error| match error {
            ProviderError::Cancelled => PlanError::Cancelled,
            error => PlanError::Model(error),
        })?;
        // If the service reports no tokens, the estimate is charged.
        let cost = match answer.usage.total() {
            0 => at_most,
            _ => self.price_of(&answer, own).map_or(0, |price| price.cost(&answer.usage)),
        };
        expenses.add(Spending::new(answer.usage.total(), cost));
        refused(&answer, context)?;
        Ok(answer)
    }

    /// Returns the price of the model that answered. Names are compared by their beginnings, because services
    /// may append a date to a model's name.
    fn price_of(&self, answer: &AssistantMessage, own: Option<ModelPrice>) -> Option<ModelPrice> {
        let of_service = self.others.iter().filter(|other| other.provider == answer.provider);
        let of_service: Vec<_> = of_service.collect();
        let is_own = self.provider.id() == answer.provider && answer.model.starts_with(&self.model);
        let named = of_service.iter().filter(|other| answer.model.starts_with(&other.model));
        let best = named.max_by_key(|other| other.model.len());
        match (best, of_service.as_slice()) {
            (Some(other), _) if !is_own || other.model.len() > self.model.len() => other.price,
            // An unknown model name of a service that has only one model here.
            (None, [only]) if self.provider.id() != answer.provider => only.price,
            _ => own,
        }
    }
}

fn check(
    at_most: u64,
    unknown: Option<&str>,
    budget: Option<Lease>,
    expenses: &SpendingCounter,
) -> Result<(), PlanError> {
    let Some(budget) = budget else { return Ok(()) };
    let spent = expenses.total();
    if budget.tokens <= spent.tokens {
        return Err(PlanError::OverBudget { what: "tokens" });
    }
    match (budget.cost_micros, unknown) {
        (Some(_), Some(model)) => Err(PlanError::UnknownPrice { model: model.to_owned() }),
        (Some(cost), None) if at_most > cost.saturating_sub(spent.cost_micros) => {
            Err(PlanError::OverBudget { what: "money" })
        }
        _ => Ok(()),
    }
}

/// Returns the maximum cost of a request, in millionths of a currency unit.
fn at_most(request: &Request, price: Option<&ModelPrice>) -> u64 {
    let Some(price) = price else { return 0 };
    let of_system = request.system.as_ref().map_or(0, |system| TokenEstimate.count(system));
    let of_messages = request.messages.iter().map(|message| TokenEstimate.count_message(message));
    let input = of_messages.fold(of_system, u64::saturating_add);
    price.at_most(input, request.options.max_tokens.map_or(ASSUMED_OUTPUT, u64::from))
}

/// Returns an error if the model refused to answer. A refusal is charged like any other answer.
fn refused(answer: &AssistantMessage, context: &Context) -> Result<(), ProviderError> {
    if answer.stop_reason != StopReason::Refusal {
        return Ok(());
    }
    let why = answer.error_message.clone().unwrap_or_else(|| answer.text());
    let message = context.redactor.clean(format!("the model refused to answer: {why}"));
    Err(ProviderError::Api { status: 200, kind: ApiErrorKind::ContentFiltered, message })
}

/// Sends a request and returns the complete answer. Deltas are ignored.
async fn ask(
    provider: &dyn Provider,
    request: Request,
    context: &Context,
) -> Result<AssistantMessage, ProviderError> {
    provider.secrets().iter().for_each(|secrets| context.redactor.include(secrets));
    let mut stream = provider.stream(request, context.cancel.clone());
    while let Some(event) = stream.next().await {
        match event.map_err(|error| error.with_text(|text| context.redactor.clean(text)))? {
            ModelEvent::Done(answer) if answer.stop_reason == StopReason::Aborted => {
                return Err(ProviderError::Cancelled);
            }
            ModelEvent::Done(mut answer) => {
                context.redactor.clean_answer(&mut answer);
                return Ok(*answer);
            }
            _ => {}
        }
    }
    Err(ProviderError::Protocol("the provider's stream ended without a final message".into()))
}
