/** An ISO 4217 code, upper case, of a currency with a known exponent. */
export type Currency =
  | "AED"
  | "AFN"
  | "ALL"
  | "AMD"
  | "ANG"
  | "AOA"
  | "ARS"
  | "AUD"
  | "AWG"
  | "AZN"
  | "BAM"
  | "BBD"
  | "BDT"
  | "BGN"
  | "BHD"
  | "BIF"
  | "BMD"
  | "BND"
  | "BOB"
  | "BOV"
  | "BRL"
  | "BSD"
  | "BTN"
  | "BWP"
  | "BYN"
  | "BZD"
  | "CAD"
  | "CDF"
  | "CHE"
  | "CHF"
  | "CHW"
  | "CLF"
  | "CLP"
  | "CNY"
  | "COP"
  | "COU"
  | "CRC"
  | "CUP"
  | "CVE"
  | "CZK"
  | "DJF"
  | "DKK"
  | "DOP"
  | "DZD"
  | "EGP"
  | "ERN"
  | "ETB"
  | "EUR"
  | "FJD"
  | "FKP"
  | "GBP"
  | "GEL"
  | "GHS"
  | "GIP"
  | "GMD"
  | "GNF"
  | "GTQ"
  | "GYD"
  | "HKD"
  | "HNL"
  | "HTG"
  | "HUF"
  | "IDR"
  | "ILS"
  | "INR"
  | "IQD"
  | "IRR"
  | "ISK"
  | "JMD"
  | "JOD"
  | "JPY"
  | "KES"
  | "KGS"
  | "KHR"
  | "KMF"
  | "KPW"
  | "KRW"
  | "KWD"
  | "KYD"
  | "KZT"
  | "LAK"
  | "LBP"
  | "LKR"
  | "LRD"
  | "LSL"
  | "LYD"
  | "MAD"
  | "MDL"
  | "MGA"
  | "MKD"
  | "MMK"
  | "MNT"
  | "MOP"
  | "MRU"
  | "MUR"
  | "MVR"
  | "MWK"
  | "MXN"
  | "MXV"
  | "MYR"
  | "MZN"
  | "NAD"
  | "NGN"
  | "NIO"
  | "NOK"
  | "NPR"
  | "NZD"
  | "OMR"
  | "PAB"
  | "PEN"
  | "PGK"
  | "PHP"
  | "PKR"
  | "PLN"
  | "PYG"
  | "QAR"
  | "RON"
  | "RSD"
  | "RUB"
  | "RWF"
  | "SAR"
  | "SBD"
  | "SCR"
  | "SDG"
  | "SEK"
  | "SGD"
  | "SHP"
  | "SLE"
  | "SOS"
  | "SRD"
  | "SSP"
  | "STN"
  | "SVC"
  | "SYP"
  | "SZL"
  | "THB"
  | "TJS"
  | "TMT"
  | "TND"
  | "TOP"
  | "TRY"
  | "TTD"
  | "TWD"
  | "TZS"
  | "UAH"
  | "UGX"
  | "USD"
  | "USN"
  | "UYI"
  | "UYU"
  | "UYW"
  | "UZS"
  | "VED"
  | "VES"
  | "VND"
  | "VUV"
  | "WST"
  | "XAF"
  | "XCD"
  | "XCG"
  | "XOF"
  | "XPF"
  | "YER"
  | "ZAR"
  | "ZMW"
  | "ZWG";

export interface NewOrder {
  /** @default null */
  customer_reference?: string | null;
  /** @default null */
  description?: string | null;
  /** An ISO 4217 code, upper case, of a currency with a known exponent. */
  currency: Currency;
  /**
   * @maxItems 200
   * @minItems 1
   */
  lines: {
    /**
     * @minLength 1
     * @maxLength 500
     */
    sku: string;
    /** @default null */
    description?: string | null;
    /**
     * @min 1
     * @max 1000000
     */
    quantity: number;
    /**
     * An amount in minor units of the currency: 1099 in USD is 10.99 dollars.
     * @min 1
     * @max 999999999999
     */
    unit_amount: number;
  }[];
  /**
   * Key-value pairs of the caller, stored and returned unchanged.
   * @default {}
   */
  metadata?: Partial<Record<string, string>>;
}

/**
 * A time by RFC 3339, in UTC or with an offset (encode + as %2B in a URL), in the years 1 to 9999, with at most nine digits of a second.
 * @format date-time
 * @maxLength 35
 */
export type TimeParameter = string;

export interface OrderPatch {
  customer_reference?: string | null;
  description?: string | null;
  /**
   * @maxItems 200
   * @minItems 1
   */
  lines?: {
    /**
     * @minLength 1
     * @maxLength 500
     */
    sku: string;
    /** @default null */
    description?: string | null;
    /**
     * @min 1
     * @max 1000000
     */
    quantity: number;
    /**
     * An amount in minor units of the currency: 1099 in USD is 10.99 dollars.
     * @min 1
     * @max 999999999999
     */
    unit_amount: number;
  }[];
  /** Null removes a key. At most 50 keys may remain after the change. */
  metadata?: Partial<Record<string, string | null>> | null;
}

export interface NewInvoice {
  /** @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$ */
  order_id: string;
  /**
   * The date by which the invoice is due (RFC 3339 full-date); 30 days from now by default.
   * @format date
   * @pattern ^(?:(?:\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|[02468][048]00|[13579][26]00)-02-29|\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|(?:02)-(?:0[1-9]|1\d|2[0-8])))$
   */
  due_date?: string;
  /**
   * Key-value pairs of the caller, stored and returned unchanged.
   * @default {}
   */
  metadata?: Partial<Record<string, string>>;
}

export interface NewPayment {
  /** @pattern ^inv_[0-9A-HJKMNP-TV-Z]{26}$ */
  invoice_id: string;
  /**
   * An amount in minor units of the currency: 1099 in USD is 10.99 dollars.
   * @min 1
   * @max 999999999999
   */
  amount: number;
  /** An ISO 4217 code, upper case, of a currency with a known exponent. */
  currency: Currency;
  /**
   * The caller’s own reference for the payment, permanently unique within the tenant.
   * @default null
   */
  reference?: string | null;
  /** @default "immediate" */
  settlement?: "immediate" | "deferred";
  /**
   * Key-value pairs of the caller, stored and returned unchanged.
   * @default {}
   */
  metadata?: Partial<Record<string, string>>;
}

export type NewExport =
  | {
      resource: "orders";
      format: "csv" | "jsonl" | "parquet";
      /** The filters of the resource’s list. */
      filters?: {
        /** A time by RFC 3339, in UTC or with an offset (encode + as %2B in a URL), in the years 1 to 9999, with at most nine digits of a second. */
        created_after?: TimeParameter;
        /** A time by RFC 3339, in UTC or with an offset (encode + as %2B in a URL), in the years 1 to 9999, with at most nine digits of a second. */
        created_before?: TimeParameter;
        state?: "open" | "invoiced" | "completed" | "cancelled";
        /** An ISO 4217 code, upper case, of a currency with a known exponent. */
        currency?: Currency;
      };
      /**
       * Key-value pairs of the caller, stored and returned unchanged.
       * @default {}
       */
      metadata?: Partial<Record<string, string>>;
    }
  | {
      resource: "invoices";
      format: "csv" | "jsonl" | "parquet";
      /** The filters of the resource’s list. */
      filters?: {
        /** A time by RFC 3339, in UTC or with an offset (encode + as %2B in a URL), in the years 1 to 9999, with at most nine digits of a second. */
        created_after?: TimeParameter;
        /** A time by RFC 3339, in UTC or with an offset (encode + as %2B in a URL), in the years 1 to 9999, with at most nine digits of a second. */
        created_before?: TimeParameter;
        state?: "draft" | "approved" | "partially_paid" | "paid" | "voided";
        /** An ISO 4217 code, upper case, of a currency with a known exponent. */
        currency?: Currency;
        /** @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$ */
        order_id?: string;
      };
      /**
       * Key-value pairs of the caller, stored and returned unchanged.
       * @default {}
       */
      metadata?: Partial<Record<string, string>>;
    }
  | {
      resource: "payments";
      format: "csv" | "jsonl" | "parquet";
      /** The filters of the resource’s list. */
      filters?: {
        /** A time by RFC 3339, in UTC or with an offset (encode + as %2B in a URL), in the years 1 to 9999, with at most nine digits of a second. */
        created_after?: TimeParameter;
        /** A time by RFC 3339, in UTC or with an offset (encode + as %2B in a URL), in the years 1 to 9999, with at most nine digits of a second. */
        created_before?: TimeParameter;
        state?:
          | "pending"
          | "succeeded"
          | "failed"
          | "partially_refunded"
          | "refunded";
        /** An ISO 4217 code, upper case, of a currency with a known exponent. */
        currency?: Currency;
        /**
         * @minLength 1
         * @maxLength 500
         */
        reference?: string;
        /** @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$ */
        order_id?: string;
        /** @pattern ^inv_[0-9A-HJKMNP-TV-Z]{26}$ */
        invoice_id?: string;
      };
      /**
       * Key-value pairs of the caller, stored and returned unchanged.
       * @default {}
       */
      metadata?: Partial<Record<string, string>>;
    }
  | {
      resource: "journal_entries";
      format: "csv" | "jsonl" | "parquet";
      /** The filters of the resource’s list. */
      filters?: {
        /** A time by RFC 3339, in UTC or with an offset (encode + as %2B in a URL), in the years 1 to 9999, with at most nine digits of a second. */
        created_after?: TimeParameter;
        /** A time by RFC 3339, in UTC or with an offset (encode + as %2B in a URL), in the years 1 to 9999, with at most nine digits of a second. */
        created_before?: TimeParameter;
        /**
         * The code of an account, such as cash.USD. That of receivables ends with a token of the customer reference: find it by GET /accounts?customer_reference=.
         * @pattern ^[a-z-]{1,40}\.[A-Z]{3}(\.[A-Za-z0-9._~-]{1,120})?$
         */
        account?: string;
        /** @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$ */
        order_id?: string;
        /** @pattern ^inv_[0-9A-HJKMNP-TV-Z]{26}$ */
        invoice_id?: string;
        /** @pattern ^pay_[0-9A-HJKMNP-TV-Z]{26}$ */
        payment_id?: string;
      };
      /**
       * Key-value pairs of the caller, stored and returned unchanged.
       * @default {}
       */
      metadata?: Partial<Record<string, string>>;
    };

export interface NewApiKey {
  /**
   * The purpose of the key, in the caller’s words.
   * @minLength 1
   * @maxLength 100
   */
  name: string;
  /**
   * The read scopes of the key; the caller must hold each of them.
   * @minItems 1
   * @uniqueItems true
   */
  scopes: (
    | "orders:read"
    | "invoices:read"
    | "payments:read"
    | "exports:read"
    | "events:read"
    | "ledger:read"
    | "audit:read"
  )[];
  /**
   * @min 1
   * @max 90
   * @default 90
   */
  expires_in_days?: number;
  /**
   * The quota of the key: a number of requests in a number of seconds, in addition to all other limits.
   * @default null
   */
  quota?: {
    /**
     * @min 1
     * @max 1000000000
     */
    requests: number;
    /**
     * @min 1
     * @max 2592000
     */
    window_seconds: number;
  } | null;
  /**
   * Key-value pairs of the caller, stored and returned unchanged.
   * @default {}
   */
  metadata?: Partial<Record<string, string>>;
}

export interface NewSubscription {
  /**
   * The types of fact; each requires the read scope of its resource.
   * @minItems 1
   * @uniqueItems true
   */
  types: (
    | "order.created"
    | "order.cancelled"
    | "invoice.approved"
    | "invoice.paid"
    | "invoice.voided"
    | "payment.succeeded"
    | "payment.failed"
    | "payment.refunded"
    | "export.completed"
  )[];
  /** Start with the facts at this position and later ones. */
  start:
    | "beginning"
    | "now"
    | {
        /** @pattern ^\d{1,19}$ */
        position: string;
      }
    | {
        /** A time by RFC 3339, in UTC or with an offset (encode + as %2B in a URL), in the years 1 to 9999, with at most nine digits of a second. */
        time: TimeParameter;
      };
  /**
   * The Kafka user that is granted access to the topic, if the broker has an authorizer.
   * @default null
   */
  principal?: string | null;
  /**
   * Key-value pairs of the caller, stored and returned unchanged.
   * @default {}
   */
  metadata?: Partial<Record<string, string>>;
}

export interface NewReplay {
  /** Start with the facts at this position and later ones. */
  from:
    | "beginning"
    | {
        /** @pattern ^\d{1,19}$ */
        position: string;
      }
    | {
        /** A time by RFC 3339, in UTC or with an offset (encode + as %2B in a URL), in the years 1 to 9999, with at most nine digits of a second. */
        time: TimeParameter;
      };
}

export interface Order {
  /** @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$ */
  id: string;
  state: "open" | "invoiced" | "completed" | "cancelled";
  /**
   * A number that increases with every change.
   * @min 0
   * @max 9007199254740991
   */
  version: number;
  tenant_id: string;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  created_at: Timestamp;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  updated_at: Timestamp;
  created_by: string;
  metadata: Partial<Record<string, string>>;
  /** Null also when an operator has erased it; the ETag is another one then. */
  customer_reference: string | null;
  description: string | null;
  /** An ISO 4217 code, upper case, of a currency with a known exponent. */
  currency: Currency;
  /**
   * Number of digits after the decimal point of the currency: 2 for USD, 0 for JPY.
   * @min 0
   * @max 4
   */
  exponent: number;
  lines: {
    sku: string;
    description: string | null;
    /**
     * @min -9007199254740991
     * @max 9007199254740991
     */
    quantity: number;
    /**
     * An amount in minor units of the currency: 1099 in USD is 10.99 dollars.
     * @min 1
     * @max 999999999999
     */
    unit_amount: number;
  }[];
  /**
   * An amount in minor units of the currency: 1099 in USD is 10.99 dollars.
   * @min 1
   * @max 999999999999
   */
  total_amount: number;
}

/**
 * A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second.
 * @format date-time
 * @maxLength 30
 * @pattern ^(?:(?:\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|[02468][048]00|[13579][26]00)-02-29|\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|(?:02)-(?:0[1-9]|1\d|2[0-8])))T(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z))$
 */
export type Timestamp = string;

/** RFC 9457 problem details, with a stable code and retry guidance. */
export interface Problem {
  type: string;
  title: string;
  /**
   * @min -9007199254740991
   * @max 9007199254740991
   */
  status: number;
  detail: string;
  instance: string;
  code:
    | "invalid_json"
    | "duplicate_json_key"
    | "json_limits_exceeded"
    | "validation_failed"
    | "unknown_parameter"
    | "cursor_invalid"
    | "cursor_expired"
    | "idempotency_key_missing"
    | "idempotency_key_invalid"
    | "precondition_invalid"
    | "unsupported_api_version"
    | "multiple_credentials"
    | "bad_request_framing"
    | "unauthenticated"
    | "token_invalid"
    | "token_expired"
    | "api_key_invalid"
    | "insufficient_scope"
    | "credential_not_permitted"
    | "policy_denied"
    | "resource_not_found"
    | "route_not_found"
    | "method_not_allowed"
    | "not_acceptable"
    | "request_timeout"
    | "invoice_state_conflict"
    | "order_state_conflict"
    | "payment_state_conflict"
    | "order_has_invoices"
    | "payment_not_allowed"
    | "payment_exceeds_due"
    | "payment_reference_conflict"
    | "too_many_changes"
    | "projection_state_conflict"
    | "concurrent_modification"
    | "idempotency_in_progress"
    | "idempotency_key_expired"
    | "version_retired"
    | "export_expired"
    | "precondition_failed"
    | "payload_too_large"
    | "uri_too_long"
    | "unsupported_media_type"
    | "range_not_satisfiable"
    | "idempotency_key_reused"
    | "precondition_required"
    | "rate_limited"
    | "quota_exceeded"
    | "headers_too_large"
    | "internal_error"
    | "dependency_unavailable"
    | "overloaded"
    | "shutting_down"
    | "projection_behind"
    | "deadline_exceeded";
  category:
    | "invalid_input"
    | "authentication"
    | "authorization"
    | "not_found"
    | "capacity"
    | "conflict"
    | "internal"
    | "dependency";
  correlation_id: string;
  retry: {
    retryable: boolean;
    strategy:
      | "do_not_retry"
      | "reauthenticate"
      | "same_request"
      | "refresh_and_resubmit"
      | "same_key"
      | "query_state_or_same_key";
    /**
     * @min -9007199254740991
     * @max 9007199254740991
     */
    after_seconds?: number;
  };
  errors?: {
    pointer: string;
    code: string;
    detail: string;
  }[];
}

export interface Invoice {
  /** @pattern ^inv_[0-9A-HJKMNP-TV-Z]{26}$ */
  id: string;
  state: "draft" | "approved" | "partially_paid" | "paid" | "voided";
  /**
   * A number that increases with every change.
   * @min 0
   * @max 9007199254740991
   */
  version: number;
  tenant_id: string;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  created_at: Timestamp;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  updated_at: Timestamp;
  created_by: string;
  metadata: Partial<Record<string, string>>;
  /** @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$ */
  order_id: string;
  /** An ISO 4217 code, upper case, of a currency with a known exponent. */
  currency: Currency;
  /**
   * Number of digits after the decimal point of the currency: 2 for USD, 0 for JPY.
   * @min 0
   * @max 4
   */
  exponent: number;
  /**
   * An amount in minor units of the currency: 1099 in USD is 10.99 dollars.
   * @min 1
   * @max 999999999999
   */
  total_amount: number;
  /**
   * An amount in minor units of the currency.
   * @min 0
   * @max 9007199254740991
   */
  amount_paid: number;
  /**
   * An amount in minor units of the currency.
   * @min 0
   * @max 9007199254740991
   */
  amount_pending: number;
  /**
   * The amount that may still be paid: total_amount minus amount_paid and amount_pending; 0 after it was voided.
   * @min 0
   * @max 9007199254740991
   */
  amount_outstanding: number;
  /**
   * An amount in minor units of the currency.
   * @min 0
   * @max 9007199254740991
   */
  amount_refunded: number;
  /**
   * @format date
   * @pattern ^(?:(?:\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|[02468][048]00|[13579][26]00)-02-29|\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|(?:02)-(?:0[1-9]|1\d|2[0-8])))$
   */
  due_date: string;
  approved_by: string | null;
  approved_at: Timestamp | null;
  paid_at: Timestamp | null;
}

export interface Payment {
  /** @pattern ^pay_[0-9A-HJKMNP-TV-Z]{26}$ */
  id: string;
  state: "pending" | "succeeded" | "failed" | "partially_refunded" | "refunded";
  /**
   * A number that increases with every change.
   * @min 0
   * @max 9007199254740991
   */
  version: number;
  tenant_id: string;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  created_at: Timestamp;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  updated_at: Timestamp;
  created_by: string;
  metadata: Partial<Record<string, string>>;
  /** @pattern ^inv_[0-9A-HJKMNP-TV-Z]{26}$ */
  invoice_id: string;
  /** @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$ */
  order_id: string;
  /**
   * An amount in minor units of the currency: 1099 in USD is 10.99 dollars.
   * @min 1
   * @max 999999999999
   */
  amount: number;
  /** An ISO 4217 code, upper case, of a currency with a known exponent. */
  currency: Currency;
  /**
   * Number of digits after the decimal point of the currency: 2 for USD, 0 for JPY.
   * @min 0
   * @max 4
   */
  exponent: number;
  /** Null also when an operator has erased it; the ETag is another one then. */
  reference: string | null;
  settlement: "immediate" | "deferred";
  failure: {
    code: string;
  } | null;
  /**
   * An amount in minor units of the currency.
   * @min 0
   * @max 9007199254740991
   */
  refunded_amount: number;
}

export interface Operation {
  /** @pattern ^op_[0-9A-HJKMNP-TV-Z]{26}$ */
  id: string;
  kind: "create_payment" | "export" | "replay_subscription";
  state:
    | "pending"
    | "running"
    | "succeeded"
    | "failed"
    | "cancelled"
    | "expired";
  /**
   * A number that increases with every change.
   * @min 0
   * @max 9007199254740991
   */
  version: number;
  tenant_id: string;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  created_at: Timestamp;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  updated_at: Timestamp;
  created_by: string;
  metadata: Partial<Record<string, string>>;
  progress: {
    /**
     * @min 0
     * @max 9007199254740991
     */
    done: number;
    /** Null while the total is unknown. */
    total: number | null;
    unit: "rows" | "payments" | "positions";
    /** Average units per second. */
    rate: number | null;
    eta_seconds: number | null;
  };
  result: {
    href: string;
  } | null;
  error: {
    code: string;
    [key: string]: any;
  } | null;
  /** The time until which the result is kept; null if it does not expire. */
  expires_at: Timestamp | null;
}

export interface HistoryEntry {
  /**
   * @format uuid
   * @pattern ^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$
   */
  event_id: string;
  type: string;
  /**
   * @min 0
   * @max 9007199254740991
   */
  revision: number;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  at: Timestamp;
  subject: string;
  client: string;
  /** The scope that permitted the change, or the internal process that made it. */
  authority: string;
  correlation_id: string;
  causation_id: string;
  data: Partial<Record<string, any>>;
}

export interface ExportManifest {
  /** @pattern ^op_[0-9A-HJKMNP-TV-Z]{26}$ */
  operation_id: string;
  resource: "orders" | "invoices" | "payments" | "journal_entries";
  format: "csv" | "jsonl" | "parquet";
  filters: Partial<Record<string, string>>;
  /**
   * @min 0
   * @max 9007199254740991
   */
  row_count: number;
  /**
   * @min 0
   * @max 9007199254740991
   */
  byte_count: number;
  /**
   * SHA-256 of the bytes of the file, in hexadecimal.
   * @pattern ^[0-9a-f]{64}$
   */
  sha256: string;
  from_position: string;
  /** Everything up to this position of the log is in the file. Before an event that is held back, if there is one. */
  to_position: string;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  created_at: Timestamp;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  expires_at: Timestamp;
}

export interface IdempotencyKey {
  operation:
    | "create_payment"
    | "refund_payment"
    | "create_order"
    | "raise_invoice"
    | "create_export"
    | "issue_api_key"
    | "create_subscription"
    | "rotate_api_key"
    | "replay_subscription";
  status: "never_seen" | "in_progress" | "succeeded" | "rejected" | "expired";
  expires_at: Timestamp | null;
  links: {
    result?: string;
    operation?: string;
  };
}

export interface ApiKeyWithSecret {
  /** @pattern ^key_[0-9A-HJKMNP-TV-Z]{26}$ */
  id: string;
  state: "active" | "revoked" | "expired";
  /**
   * A number that increases with every change.
   * @min 0
   * @max 9007199254740991
   */
  version: number;
  tenant_id: string;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  created_at: Timestamp;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  updated_at: Timestamp;
  created_by: string;
  metadata: Partial<Record<string, string>>;
  name: string;
  /** The beginning of the key, to recognise it by. */
  prefix: string;
  scopes: (
    | "orders:read"
    | "invoices:read"
    | "payments:read"
    | "exports:read"
    | "events:read"
    | "ledger:read"
    | "audit:read"
  )[];
  /** The quota of the key: a number of requests in a number of seconds, in addition to all other limits. */
  quota: {
    /**
     * @min 1
     * @max 1000000000
     */
    requests: number;
    /**
     * @min 1
     * @max 2592000
     */
    window_seconds: number;
  } | null;
  /** The time at which the newest secret expires. A rotation starts a new period. */
  expires_at: Timestamp;
  rotated_at: Timestamp | null;
  /** The time until which the previous secret works as well. */
  previous_secret_until: Timestamp | null;
  revoked_at: Timestamp | null;
  /** The whole key, for the header X-API-Key. No other response shows it. */
  secret: string;
}

export interface ApiKey {
  /** @pattern ^key_[0-9A-HJKMNP-TV-Z]{26}$ */
  id: string;
  state: "active" | "revoked" | "expired";
  /**
   * A number that increases with every change.
   * @min 0
   * @max 9007199254740991
   */
  version: number;
  tenant_id: string;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  created_at: Timestamp;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  updated_at: Timestamp;
  created_by: string;
  metadata: Partial<Record<string, string>>;
  name: string;
  /** The beginning of the key, to recognise it by. */
  prefix: string;
  scopes: (
    | "orders:read"
    | "invoices:read"
    | "payments:read"
    | "exports:read"
    | "events:read"
    | "ledger:read"
    | "audit:read"
  )[];
  /** The quota of the key: a number of requests in a number of seconds, in addition to all other limits. */
  quota: {
    /**
     * @min 1
     * @max 1000000000
     */
    requests: number;
    /**
     * @min 1
     * @max 2592000
     */
    window_seconds: number;
  } | null;
  /** The time at which the newest secret expires. A rotation starts a new period. */
  expires_at: Timestamp;
  rotated_at: Timestamp | null;
  /** The time until which the previous secret works as well. */
  previous_secret_until: Timestamp | null;
  revoked_at: Timestamp | null;
}

export interface CloudEvent {
  /** The version of CloudEvents. */
  specversion: "1.0";
  /**
   * The id of the fact, the same at every delivery.
   * @format uuid
   * @pattern ^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$
   */
  id: string;
  /** The ledger. Source and id together are unique. */
  source: string;
  /** The type of the fact. Ignore unknown types: others may be added. */
  type: string;
  /** The id of the resource that the fact is about. */
  subject: string;
  /**
   * The time of the event. RFC 3339, UTC.
   * @format date-time
   * @pattern ^(?:(?:\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|[02468][048]00|[13579][26]00)-02-29|\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|(?:02)-(?:0[1-9]|1\d|2[0-8])))T(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z))$
   */
  time: string;
  datacontenttype: "application/json";
  /**
   * The absolute URI of the JSON Schema of the data, which names type and version.
   * @format uri
   */
  dataschema: string;
  /** Equal to the subject. Facts of one subject are delivered in order. */
  partitionkey: string;
  /**
   * Increases with every fact of the subject, and sorts as text. Events that are not published leave gaps.
   * @pattern ^\d{20}$
   */
  sequence: string;
  /**
   * The position of the event. A position of the log, as text, since it may exceed what a double represents.
   * @pattern ^\d{1,20}$
   */
  position: string;
  /** The correlation id of the request that caused the fact. */
  correlationid: string;
  /** The id of the command or event that caused the fact. */
  causationid: string;
  /** The tenant of the fact. */
  tenantid: string;
  /**
   * W3C Trace Context of the request, if any.
   * @pattern ^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$
   */
  traceparent?: string;
  /** The data, described by dataschema. */
  data: Partial<Record<string, any>>;
}

export interface FactManifest {
  topic:
    | "ledger.order.v1"
    | "ledger.invoice.v1"
    | "ledger.payment.v1"
    | "ledger.operation.v1";
  from_position: string;
  to_position: string;
  /**
   * @min 0
   * @max 9007199254740991
   */
  count: number;
  /**
   * SHA-256 over the ids of the facts, in the order of their positions, each followed by a line feed.
   * @pattern ^[0-9a-f]{64}$
   */
  sha256: string;
  /** Events of the range that are held back and may become facts, the first 100: they are neither counted nor hashed, and come at the end of the feed when they are released. A proof holds for everything else. */
  missing: {
    id: string;
    position: string;
  }[];
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  at: Timestamp;
}

export interface Subscription {
  /** @pattern ^sub_[0-9A-HJKMNP-TV-Z]{26}$ */
  id: string;
  state: "active" | "paused" | "stopped";
  /**
   * A number that increases with every change.
   * @min 0
   * @max 9007199254740991
   */
  version: number;
  tenant_id: string;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  created_at: Timestamp;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  updated_at: Timestamp;
  created_by: string;
  metadata: Partial<Record<string, string>>;
  types: (
    | "order.created"
    | "order.cancelled"
    | "invoice.approved"
    | "invoice.paid"
    | "invoice.voided"
    | "payment.succeeded"
    | "payment.failed"
    | "payment.refunded"
    | "export.completed"
  )[];
  /** The Kafka topic of the facts, byte for byte those of the public topics. */
  topic: string;
  /** The Kafka topic of the facts that could not be delivered, with the reasons. */
  dead_letter_topic: string;
  principal: string | null;
  /** granted: only the principal reads the topic, in consumer groups whose names begin with that of the topic; not_enforced: the broker has no authorizer; none: there is no principal; pending: there is no topic yet, or access was withdrawn. */
  acl: "pending" | "granted" | "not_enforced" | "none";
  /** Every fact up to this position of the log is delivered or parked. */
  position: string;
  /** The number of facts that are not yet delivered; 1000 means that many or more. Null if not counted. */
  lag: number | null;
  /**
   * The number of parked facts, which wait for an operator; 1000 means that many or more.
   * @min 0
   * @max 9007199254740991
   */
  parked: number;
  /** The reason of the stop: tenant_suspended, scope_revoked, creator_not_seen. Other values may be added. */
  stop_reason: string | null;
  /** The subscription is stopped at this time (creator_not_seen) unless its creator sends any request with a valid credential before. :resume confirms it too. Null until the delivery has begun. */
  confirm_by: Timestamp | null;
}

export interface DeadLetter {
  /**
   * The id of the fact.
   * @format uuid
   * @pattern ^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$
   */
  id: string;
  type: string;
  /** The key of the fact; later facts of the same key wait, too. */
  subject: string;
  position: string;
  reason: string;
  /**
   * The number of attempts; zero for a fact that only waits behind another one of its key.
   * @min 0
   * @max 9007199254740991
   */
  attempts: number;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  first_failed_at: Timestamp;
}

export interface Account {
  /**
   * The code of an account, such as cash.USD. That of receivables ends with a token of the customer reference: find it by GET /accounts?customer_reference=.
   * @pattern ^[a-z-]{1,40}\.[A-Z]{3}(\.[A-Za-z0-9._~-]{1,120})?$
   */
  code: string;
  name: string;
  type: "asset" | "liability" | "equity" | "revenue" | "expense";
  /** An ISO 4217 code, upper case, of a currency with a known exponent. */
  currency: Currency;
  /**
   * Number of digits after the decimal point of the currency: 2 for USD, 0 for JPY.
   * @min 0
   * @max 4
   */
  exponent: number;
  /** The customer of receivables, as in the order that was invoiced; null for other accounts, and when it was erased. */
  customer_reference: string | null;
  /** The side on which the balances grow. */
  normal_side: "debit" | "credit";
  balances: Balances;
}

export interface Balances {
  /**
   * Number of digits after the decimal point of the currency: 2 for USD, 0 for JPY.
   * @min 0
   * @max 4
   */
  exponent: number;
  /** The balance of all that is final, in minor units on the normal side. May exceed 2^53 - 1, with exact digits. */
  posted: number;
  /** The change by payments that are neither settled nor failed. May exceed 2^53 - 1, with exact digits. */
  pending: number;
  /** The posted balance, less what pending payments take from it. May exceed 2^53 - 1, with exact digits. */
  available: number;
}

export interface JournalEntry {
  /** @pattern ^ent_[0-9A-HJKMNP-TV-Z]{26}$ */
  id: string;
  /** The time of the entry; never before that of an earlier entry. */
  at: Timestamp;
  /** The position of the event in the log: the order of the journal. */
  position: string;
  /**
   * The event that the entry is made from.
   * @format uuid
   * @pattern ^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$
   */
  event_id: string;
  kind:
    | "invoice_approved"
    | "invoice_voided"
    | "payment_pending"
    | "payment_received"
    | "payment_settled"
    | "payment_failed"
    | "payment_refunded";
  description: string;
  /** @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$ */
  order_id: string;
  /** @pattern ^inv_[0-9A-HJKMNP-TV-Z]{26}$ */
  invoice_id: string;
  payment_id: string | null;
  /** The entry that this one reverses. */
  reverses: string | null;
  /** The entry that reverses this one. */
  reversed_by: string | null;
  /**
   * The sum of the debits is that of the credits.
   * @minItems 2
   */
  postings: Posting[];
}

export interface Posting {
  /**
   * The code of an account, such as cash.USD. That of receivables ends with a token of the customer reference: find it by GET /accounts?customer_reference=.
   * @pattern ^[a-z-]{1,40}\.[A-Z]{3}(\.[A-Za-z0-9._~-]{1,120})?$
   */
  account: string;
  direction: "debit" | "credit";
  /**
   * An amount in minor units of the currency: 1099 in USD is 10.99 dollars.
   * @min 1
   * @max 999999999999
   */
  amount: number;
  /** An ISO 4217 code, upper case, of a currency with a known exponent. */
  currency: Currency;
}

export interface TrialBalanceRow {
  /**
   * The code of an account, such as cash.USD. That of receivables ends with a token of the customer reference: find it by GET /accounts?customer_reference=.
   * @pattern ^[a-z-]{1,40}\.[A-Z]{3}(\.[A-Za-z0-9._~-]{1,120})?$
   */
  account: string;
  /** An ISO 4217 code, upper case, of a currency with a known exponent. */
  currency: Currency;
  /**
   * Number of digits after the decimal point of the currency: 2 for USD, 0 for JPY.
   * @min 0
   * @max 4
   */
  exponent: number;
  /**
   * The sum of all debits of the account, in minor units. May exceed 2^53 - 1, with exact digits.
   * @min 0
   */
  debits: number;
  /**
   * The sum of all credits of the account, in minor units. May exceed 2^53 - 1, with exact digits.
   * @min 0
   */
  credits: number;
}

export interface AuditRecord {
  /**
   * @format uuid
   * @pattern ^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$
   */
  id: string;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  created_at: Timestamp;
  tenant_id: string;
  decision: "granted" | "denied";
  /** The operationId of this document. */
  operation: string;
  /** The check that refused, or the last one that was passed. */
  check: "scope" | "tenant" | "ownership" | "state" | "policy";
  /** The error code that the caller got; null for a grant. */
  code: string | null;
  resource: string | null;
  /** The subject of the credential; "another tenant" for a caller of another tenant. */
  subject: string;
  client: string;
  /** The required scope, or the internal process that completed the operation. */
  authority: string;
  /** The id of the request; one made by the service where the subject is "another tenant". */
  correlation_id: string;
  /** The position of the event in the log. */
  position: string;
  /**
   * The number of decisions of the record; equal refusals are counted in one record.
   * @min 1
   * @max 9007199254740991
   */
  count: number;
}

export interface ProjectionList {
  items: Projection[];
}

export interface Projection {
  name: string;
  /** The position of the log up to which it has every event. */
  position: string | null;
  lag: {
    /**
     * The events that it lacks; counted up to 1000.
     * @min 0
     * @max 9007199254740991
     */
    events: number;
    /**
     * The age of the oldest event that it lacks.
     * @min 0
     * @max 9007199254740991
     */
    seconds: number;
  };
  /**
   * Events that wait for an operator: ledger dead-letters.
   * @min 0
   * @max 9007199254740991
   */
  parked_events: number;
  /** The position of the replaced tables, which a roll-back continues; null if none are kept. */
  previous_position: string | null;
  /** The newest rebuild. */
  rebuild: ProjectionRebuild | null;
}

export interface ProjectionRebuild {
  /** The id of the operation. */
  id: string;
  kind: "rebuild" | "verify" | "rollback";
  projection: string;
  /** refused: the rebuilt rows differ, the live tables stay, and the rebuilt ones wait for a decision. */
  state:
    | "pending"
    | "running"
    | "refused"
    | "succeeded"
    | "failed"
    | "cancelled";
  progress: {
    /**
     * @min 0
     * @max 9007199254740991
     */
    done: number;
    /** An estimate; null while it is unknown. */
    total: number | null;
    unit: "events";
    /** Average units per second. */
    rate: number | null;
    eta_seconds: number | null;
  };
  /** Null before the comparison. */
  parity: {
    /** The position of the log at which both were compared. */
    position: string;
    tables: {
      table: string;
      /**
       * @min 0
       * @max 9007199254740991
       */
      tenants: number;
      /**
       * @min 0
       * @max 9007199254740991
       */
      rows: number;
      /** Equal for equal rows, whatever their order. */
      checksum: string;
    }[];
  } | null;
  /** The first difference; null if there is none. */
  difference: {
    table: string;
    /** The primary key of the row; null where the tables themselves differ. */
    key: string | null;
    tenant_id: string | null;
    /** Null where one side has no such row. */
    column: string | null;
    live: string | null;
    rebuilt: string | null;
    /**
     * The number of rows of the table that differ.
     * @min 0
     * @max 9007199254740991
     */
    rows: number;
  } | null;
  accepted_reason: string | null;
  error: string | null;
  requested_by: string;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  requested_at: Timestamp;
  ended_at: Timestamp | null;
}

export interface AuditHead {
  v: 1;
  /** The id of the event that identifies the log. */
  log: string;
  /**
   * One more for each restored log that an operator has accepted; it begins with a head that has `restart`.
   * @min 1
   * @max 9007199254740991
   */
  generation: number;
  /**
   * The number of events.
   * @min 0
   * @max 9007199254740991
   */
  tree_size: number;
  /**
   * The root of the Merkle tree (RFC 6962, section 2.1, SHA-256), hexadecimal.
   * @pattern ^[0-9a-f]{64}$
   */
  root: string;
  /** The position of the last of the events in the log. */
  position: string;
  /** A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second. */
  time: Timestamp;
  /**
   * The size of the head before; zero for the first.
   * @min 0
   * @max 9007199254740991
   */
  previous_size: number;
  /** The accepted loss of events with which a generation begins. */
  restart?: {
    /**
     * @min 0
     * @max 9007199254740991
     */
    kept_size: number;
    /**
     * @min 0
     * @max 9007199254740991
     */
    abandoned_size: number;
    /** @pattern ^[0-9a-f]{64}$ */
    abandoned_root: string;
    audit_record: string;
    /** The acceptance: by whom and why, and the generation of the abandoned head. */
    accepted: {
      by: string;
      reason: string;
      /**
       * @min -9007199254740991
       * @max 9007199254740991
       */
      abandoned_generation: number;
    };
  };
  /** The beginning of the SHA-256 of the public key (SubjectPublicKeyInfo, DER), hexadecimal. */
  key: string;
  /** The proof that the tree of `previous_size` is the beginning of this one (RFC 9162, section 2.1.4). */
  consistency: string[];
  /** Ed25519, base64, over the canonical JSON (RFC 8785) of the members above without `consistency`: v, log, generation, tree_size, root, position, time, previous_size, restart where there is one, and key. */
  signature: string;
  /** SubjectPublicKeyInfo, base64. Compare it with one that you got from elsewhere. */
  public_key: string;
}

export interface AuditProof {
  /**
   * @format uuid
   * @pattern ^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$
   */
  event_id: string;
  /**
   * The index of the event in the tree, from 0.
   * @min 0
   * @max 9007199254740991
   */
  leaf_index: number;
  /**
   * SHA-256 of a zero byte and the event’s canonical JSON, hexadecimal. Where nothing is withheld, those are the bytes of `event`.
   * @pattern ^[0-9a-f]{64}$
   */
  leaf_hash: string;
  /** The hashes from the leaf to the root (RFC 9162, section 2.1.3), hexadecimal. */
  inclusion_path: string[];
  head: AuditHead;
  /** The event as it is in the log now, as a text of canonical JSON (RFC 8785), without what is withheld. Null if the event is missing or is withheld whole. */
  event: string | null;
  /** How the service finds the event in the log now: `present` if it has leaf_hash, `changed` if it has another hash, or `missing`. */
  event_state: "present" | "changed" | "missing";
  /** The parts that `event` does not show, each by its JSON pointer (RFC 6901), which is empty for the whole event, and the reason. If there are any, you cannot compute leaf_hash from `event`: the path proves that leaf_hash is under the signed head, and event_state is what the service says of the event behind it. An operator can check that against the store with `ledger streams show`. */
  withheld: {
    pointer: string;
    reason: "credential" | "idempotency_record" | "not_readable";
  }[];
}

export namespace Orders {
  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope orders:write. An Idempotency-Key makes the request safe to repeat. Rate class: default. Deadline: 10 s.
   * @tags Orders
   * @name CreateOrder
   * @summary Create an order
   * @request POST:/orders
   * @secure
   */
  export namespace CreateOrder {
    export type RequestParams = {};
    export type RequestQuery = {};
    export type RequestBody = NewOrder;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A key that the caller chooses, one per intent, with or without quotes. The same key with the same request has one effect.
       * @pattern ^(?:[!#-~]{1,255}|"(?:[!#-[\]-~]|\\["\\]){1,255}")$
       * @example "5f0c6a52-9d1e-4a57-8f4e-0d6a1b2c3d4e"
       */
      "Idempotency-Key"?: string;
    };
    export type ResponseBody = Order;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope orders:read. Items are ordered by created_at (descending), then id (descending). Rate class: default. Deadline: 10 s.
   * @tags Orders
   * @name ListOrders
   * @summary List orders, newest first
   * @request GET:/orders
   * @secure
   */
  export namespace ListOrders {
    export type RequestParams = {};
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
      /** Only items that were created after this time. */
      created_after?: TimeParameter;
      /** Only items that were created before this time. */
      created_before?: TimeParameter;
      /** Only items in this state. */
      state?: "open" | "invoiced" | "completed" | "cancelled";
      /** Only items in this currency. */
      currency?: Currency;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A Ledger-Position: the list must be complete up to this position, else 503 projection_behind.
       * @pattern ^\d{1,19}$
       */
      "If-Min-Position"?: string;
      /**
       * RFC 7240. `wait=n`: wait up to n seconds. Other preferences are ignored.
       * @example "wait=5"
       */
      Prefer?: string;
    };
    export type ResponseBody = {
      items: Order[];
      page: {
        next_cursor: string | null;
        has_more: boolean;
        /** The position of the log up to which the list is complete. */
        as_of_position: string;
      };
    };
  }

  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope orders:read. Rate class: default. Deadline: 10 s.
   * @tags Orders
   * @name ReadOrder
   * @summary Read an order
   * @request GET:/orders/{id}
   * @secure
   */
  export namespace ReadOrder {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {
      /** Returns the resource as it was at this time; 404 before its creation. */
      as_of?: TimeParameter;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * The ETag of the caller’s copy: 304 if the resource still has that version.
       * @pattern ^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$
       */
      "If-None-Match"?: string;
    };
    export type ResponseBody = Order;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope orders:write. The header If-Match is required. Rate class: default. Deadline: 10 s.
   * @tags Orders
   * @name ChangeOrder
   * @summary Change members of an order
   * @request PATCH:/orders/{id}
   * @secure
   */
  export namespace ChangeOrder {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = OrderPatch;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * The ETag that the caller read. The command is executed only if the resource still has that version.
       * @pattern ^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$
       */
      "If-Match": string;
    };
    export type ResponseBody = Order;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope orders:write. The header If-Match is required. Rate class: default. Deadline: 10 s.
   * @tags Orders
   * @name DeleteOrder
   * @summary Delete an order; its history remains readable
   * @request DELETE:/orders/{id}
   * @secure
   */
  export namespace DeleteOrder {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * The ETag that the caller read. The command is executed only if the resource still has that version.
       * @pattern ^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$
       */
      "If-Match": string;
    };
    export type ResponseBody = void;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope orders:write. The header If-Match is required. Rate class: default. Deadline: 10 s.
   * @tags Orders
   * @name CancelOrder
   * @summary Cancel an open order
   * @request POST:/orders/{id}:cancel
   * @secure
   */
  export namespace CancelOrder {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = {
      /** @default null */
      reason?: string | null;
    };
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * The ETag that the caller read. The command is executed only if the resource still has that version.
       * @pattern ^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$
       */
      "If-Match": string;
    };
    export type ResponseBody = Order;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope orders:read. Items are ordered by revision. Rate class: default. Deadline: 10 s.
   * @tags History
   * @name ReadOrderHistory
   * @summary Everything that happened to the order, oldest first; also after it was deleted
   * @request GET:/orders/{id}/history
   * @secure
   */
  export namespace ReadOrderHistory {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = {
      items: HistoryEntry[];
      page: {
        next_cursor: string | null;
        has_more: boolean;
        /** The position of the log up to which the list is complete. */
        as_of_position: string;
      };
    };
  }
}

export namespace Invoices {
  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope invoices:write. An Idempotency-Key makes the request safe to repeat. Rate class: default. Deadline: 10 s.
   * @tags Invoices
   * @name RaiseInvoice
   * @summary Raise an invoice from an open order
   * @request POST:/invoices
   * @secure
   */
  export namespace RaiseInvoice {
    export type RequestParams = {};
    export type RequestQuery = {};
    export type RequestBody = NewInvoice;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A key that the caller chooses, one per intent, with or without quotes. The same key with the same request has one effect.
       * @pattern ^(?:[!#-~]{1,255}|"(?:[!#-[\]-~]|\\["\\]){1,255}")$
       * @example "5f0c6a52-9d1e-4a57-8f4e-0d6a1b2c3d4e"
       */
      "Idempotency-Key"?: string;
    };
    export type ResponseBody = Invoice;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope invoices:read. Items are ordered by created_at (descending), then id (descending). Rate class: default. Deadline: 10 s.
   * @tags Invoices
   * @name ListInvoices
   * @summary List invoices, newest first
   * @request GET:/invoices
   * @secure
   */
  export namespace ListInvoices {
    export type RequestParams = {};
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
      /** Only items that were created after this time. */
      created_after?: TimeParameter;
      /** Only items that were created before this time. */
      created_before?: TimeParameter;
      /** Only items in this state. */
      state?: "draft" | "approved" | "partially_paid" | "paid" | "voided";
      /** Only items in this currency. */
      currency?: Currency;
      /**
       * Only items of this order.
       * @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$
       */
      order_id?: string;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A Ledger-Position: the list must be complete up to this position, else 503 projection_behind.
       * @pattern ^\d{1,19}$
       */
      "If-Min-Position"?: string;
      /**
       * RFC 7240. `wait=n`: wait up to n seconds. Other preferences are ignored.
       * @example "wait=5"
       */
      Prefer?: string;
    };
    export type ResponseBody = {
      items: Invoice[];
      page: {
        next_cursor: string | null;
        has_more: boolean;
        /** The position of the log up to which the list is complete. */
        as_of_position: string;
      };
    };
  }

  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope invoices:read. Rate class: default. Deadline: 10 s.
   * @tags Invoices
   * @name ReadInvoice
   * @summary Read an invoice
   * @request GET:/invoices/{id}
   * @secure
   */
  export namespace ReadInvoice {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^inv_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {
      /** Returns the resource as it was at this time; 404 before its creation. */
      as_of?: TimeParameter;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * The ETag of the caller’s copy: 304 if the resource still has that version.
       * @pattern ^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$
       */
      "If-None-Match"?: string;
    };
    export type ResponseBody = Invoice;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope invoice:approve. The header If-Match is required. Rate class: default. Deadline: 10 s.
   * @tags Invoices
   * @name ApproveInvoice
   * @summary Approve a draft invoice for payment
   * @request POST:/invoices/{id}:approve
   * @secure
   */
  export namespace ApproveInvoice {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^inv_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = object;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * The ETag that the caller read. The command is executed only if the resource still has that version.
       * @pattern ^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$
       */
      "If-Match": string;
    };
    export type ResponseBody = Invoice;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope invoices:write. The header If-Match is required. Rate class: default. Deadline: 10 s.
   * @tags Invoices
   * @name VoidInvoice
   * @summary Void an invoice that has no payments
   * @request POST:/invoices/{id}:void
   * @secure
   */
  export namespace VoidInvoice {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^inv_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = {
      /**
       * @minLength 1
       * @maxLength 500
       */
      reason: string;
    };
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * The ETag that the caller read. The command is executed only if the resource still has that version.
       * @pattern ^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$
       */
      "If-Match": string;
    };
    export type ResponseBody = Invoice;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope invoices:read. Items are ordered by revision. Rate class: default. Deadline: 10 s.
   * @tags History
   * @name ReadInvoiceHistory
   * @summary Everything that happened to the invoice, oldest first; also after it was deleted
   * @request GET:/invoices/{id}/history
   * @secure
   */
  export namespace ReadInvoiceHistory {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^inv_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = {
      items: HistoryEntry[];
      page: {
        next_cursor: string | null;
        has_more: boolean;
        /** The position of the log up to which the list is complete. */
        as_of_position: string;
      };
    };
  }
}

export namespace Payments {
  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope payments:write. The header Idempotency-Key is required. Rate class: payments. Deadline: 5 s.
   * @tags Payments
   * @name CreatePayment
   * @summary Pay an invoice, exactly once per Idempotency-Key
   * @request POST:/payments
   * @secure
   */
  export namespace CreatePayment {
    export type RequestParams = {};
    export type RequestQuery = {};
    export type RequestBody = NewPayment;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * RFC 7240. `respond-async`: respond 202 with an operation in place of the outcome; `wait=n`: wait up to n seconds for it. Other preferences are ignored.
       * @example "respond-async"
       */
      Prefer?: string;
      /**
       * A key that the caller chooses, one per intent, with or without quotes. The same key with the same request has one effect.
       * @pattern ^(?:[!#-~]{1,255}|"(?:[!#-[\]-~]|\\["\\]){1,255}")$
       * @example "5f0c6a52-9d1e-4a57-8f4e-0d6a1b2c3d4e"
       */
      "Idempotency-Key": string;
    };
    export type ResponseBody = Payment;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope payments:read. Items are ordered by created_at (descending), then id (descending). Rate class: default. Deadline: 10 s.
   * @tags Payments
   * @name ListPayments
   * @summary List payments, newest first
   * @request GET:/payments
   * @secure
   */
  export namespace ListPayments {
    export type RequestParams = {};
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
      /** Only items that were created after this time. */
      created_after?: TimeParameter;
      /** Only items that were created before this time. */
      created_before?: TimeParameter;
      /** Only items in this state. */
      state?:
        | "pending"
        | "succeeded"
        | "failed"
        | "partially_refunded"
        | "refunded";
      /** Only items in this currency. */
      currency?: Currency;
      /**
       * Only the item with this reference.
       * @minLength 1
       * @maxLength 500
       */
      reference?: string;
      /**
       * Only items of this order.
       * @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$
       */
      order_id?: string;
      /**
       * Only items of this invoice.
       * @pattern ^inv_[0-9A-HJKMNP-TV-Z]{26}$
       */
      invoice_id?: string;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A Ledger-Position: the list must be complete up to this position, else 503 projection_behind.
       * @pattern ^\d{1,19}$
       */
      "If-Min-Position"?: string;
      /**
       * RFC 7240. `wait=n`: wait up to n seconds. Other preferences are ignored.
       * @example "wait=5"
       */
      Prefer?: string;
    };
    export type ResponseBody = {
      items: Payment[];
      page: {
        next_cursor: string | null;
        has_more: boolean;
        /** The position of the log up to which the list is complete. */
        as_of_position: string;
      };
    };
  }

  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope payments:read. Rate class: default. Deadline: 10 s.
   * @tags Payments
   * @name ReadPayment
   * @summary Read a payment
   * @request GET:/payments/{id}
   * @secure
   */
  export namespace ReadPayment {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^pay_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {
      /** Returns the resource as it was at this time; 404 before its creation. */
      as_of?: TimeParameter;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * The ETag of the caller’s copy: 304 if the resource still has that version.
       * @pattern ^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$
       */
      "If-None-Match"?: string;
    };
    export type ResponseBody = Payment;
  }

  /**
   * @description Permitted with a workload’s token that has the scope payments:settle. Rate class: default. Deadline: 10 s.
   * @tags Payments
   * @name SettlePayment
   * @summary Settle a deferred payment; a repetition has no further effect
   * @request POST:/payments/{id}:settle
   * @secure
   */
  export namespace SettlePayment {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^pay_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = object;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = Payment;
  }

  /**
   * @description Permitted with a workload’s token that has the scope payments:settle. Rate class: default. Deadline: 10 s.
   * @tags Payments
   * @name FailPayment
   * @summary Fail a deferred payment; its amount is due on the invoice again
   * @request POST:/payments/{id}:fail
   * @secure
   */
  export namespace FailPayment {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^pay_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = {
      /**
       * The reason of the failure, as a code of the system that settles payments.
       * @default "declined"
       * @pattern ^[a-z][a-z0-9_]{0,63}$
       */
      code?: string;
    };
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = Payment;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope payments:refund. The header Idempotency-Key is required. Rate class: default. Deadline: 10 s.
   * @tags Payments
   * @name RefundPayment
   * @summary Refund a payment in part or in full, exactly once per Idempotency-Key
   * @request POST:/payments/{id}:refund
   * @secure
   */
  export namespace RefundPayment {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^pay_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = {
      /** The amount to refund; "remaining" for the whole amount that is not yet refunded. */
      amount: number | "remaining";
      /**
       * @minLength 1
       * @maxLength 500
       */
      reason: string;
    };
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A key that the caller chooses, one per intent, with or without quotes. The same key with the same request has one effect.
       * @pattern ^(?:[!#-~]{1,255}|"(?:[!#-[\]-~]|\\["\\]){1,255}")$
       * @example "5f0c6a52-9d1e-4a57-8f4e-0d6a1b2c3d4e"
       */
      "Idempotency-Key": string;
    };
    export type ResponseBody = Payment;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope payments:read. Items are ordered by revision. Rate class: default. Deadline: 10 s.
   * @tags History
   * @name ReadPaymentHistory
   * @summary Everything that happened to the payment, oldest first; also after it was deleted
   * @request GET:/payments/{id}/history
   * @secure
   */
  export namespace ReadPaymentHistory {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^pay_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = {
      items: HistoryEntry[];
      page: {
        next_cursor: string | null;
        has_more: boolean;
        /** The position of the log up to which the list is complete. */
        as_of_position: string;
      };
    };
  }
}

export namespace Exports {
  /**
   * @description A file of journal_entries has one row for each posting, oldest first, with the balance of its account after the entry. With the filter account it is the statement of that account; created_after and created_before are bounds of the time of the entry: from created_after, which is included, to before created_before. Permitted with a user’s token or a workload’s token that has the scope exports:write. An Idempotency-Key makes the request safe to repeat. Rate class: exports. Deadline: 10 s.
   * @tags Exports
   * @name CreateExport
   * @summary Export orders, invoices, payments or the journal to a file
   * @request POST:/exports
   * @secure
   */
  export namespace CreateExport {
    export type RequestParams = {};
    export type RequestQuery = {};
    export type RequestBody = NewExport;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A key that the caller chooses, one per intent, with or without quotes. The same key with the same request has one effect.
       * @pattern ^(?:[!#-~]{1,255}|"(?:[!#-[\]-~]|\\["\\]){1,255}")$
       * @example "5f0c6a52-9d1e-4a57-8f4e-0d6a1b2c3d4e"
       */
      "Idempotency-Key"?: string;
    };
    export type ResponseBody = Operation;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope exports:read. Rate class: default. Deadline: 10 s.
   * @tags Exports
   * @name ReadExportManifest
   * @summary Read the manifest of an export: its contents and checksum
   * @request GET:/exports/{id}/manifest
   * @secure
   */
  export namespace ReadExportManifest {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^op_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * The ETag of the caller’s copy: 304 if the resource still has that version.
       * @pattern ^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$
       */
      "If-None-Match"?: string;
    };
    export type ResponseBody = ExportManifest;
  }

  /**
   * @description Whole, or the one range of bytes that Range names; several ranges are answered with the whole file. In a csv file a text that a spreadsheet would calculate, or that begins with an apostrophe, has one apostrophe before it: remove one from each text that begins with one, and it is as it was. A caller may download few files at once, 4 by default, and all callers of a tenant together 8. Permitted with a user’s token or a workload’s token or an API key that has the scope exports:read. Rate class: default. Deadline: 10 s.
   * @tags Exports
   * @name ReadExport
   * @summary The file
   * @request GET:/exports/{id}/content
   * @secure
   */
  export namespace ReadExport {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^op_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * The ETag of the caller’s copy: 304 if the resource still has that version.
       * @pattern ^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$
       */
      "If-None-Match"?: string;
      /**
       * One range of bytes (RFC 9110 §14). Other units, several ranges and malformed ones are ignored.
       * @example "bytes=1048576-"
       */
      Range?: string;
      /**
       * The ETag of the caller’s part: of another version the whole file is returned.
       * @pattern ^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$
       */
      "If-Range"?: string;
    };
    export type ResponseBody = Blob;
  }

  /**
   * @description The operation can still be read: its state is expired, and the content is answered with 410. An export that has not finished is cancelled. Deleting it again has no effect. Permitted with a user’s token or a workload’s token that has the scope exports:write. Rate class: default. Deadline: 10 s.
   * @tags Exports
   * @name DeleteExport
   * @summary Delete the file of an export
   * @request DELETE:/exports/{id}
   * @secure
   */
  export namespace DeleteExport {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^op_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = void;
  }
}

export namespace Operations {
  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope exports:read. Items are ordered by created_at (descending), then id (descending). Rate class: default. Deadline: 10 s.
   * @tags Operations
   * @name ListOperations
   * @summary List the operations of exports, newest first
   * @request GET:/operations
   * @secure
   */
  export namespace ListOperations {
    export type RequestParams = {};
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
      /** Only items that were created after this time. */
      created_after?: TimeParameter;
      /** Only items that were created before this time. */
      created_before?: TimeParameter;
      /** Only items in this state. */
      state?:
        | "pending"
        | "running"
        | "succeeded"
        | "failed"
        | "cancelled"
        | "expired";
      /** Only operations of this kind. */
      kind?: "export";
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A Ledger-Position: the list must be complete up to this position, else 503 projection_behind.
       * @pattern ^\d{1,19}$
       */
      "If-Min-Position"?: string;
      /**
       * RFC 7240. `wait=n`: wait up to n seconds. Other preferences are ignored.
       * @example "wait=5"
       */
      Prefer?: string;
    };
    export type ResponseBody = {
      items: Operation[];
      page: {
        next_cursor: string | null;
        has_more: boolean;
        /** The position of the log up to which the list is complete. */
        as_of_position: string;
      };
    };
  }

  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope exports:read or payments:read or events:subscribe. Rate class: default. Deadline: 10 s.
   * @tags Operations
   * @name ReadOperation
   * @summary Read an operation: an export, a payment that was not decided at once, or a replay
   * @request GET:/operations/{id}
   * @secure
   */
  export namespace ReadOperation {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^op_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * The ETag of the caller’s copy: 304 if the resource still has that version.
       * @pattern ^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$
       */
      "If-None-Match"?: string;
    };
    export type ResponseBody = Operation;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope exports:write. Rate class: default. Deadline: 10 s.
   * @tags Operations
   * @name CancelOperation
   * @summary Cancel an export; one that has ended is returned unchanged
   * @request POST:/operations/{id}:cancel
   * @secure
   */
  export namespace CancelOperation {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^op_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = object;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = Operation;
  }
}

export namespace IdempotencyKeys {
  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope payments:read. Rate class: default. Deadline: 10 s.
   * @tags Payments
   * @name ReadIdempotencyKey
   * @summary Read the outcome of the caller’s own Idempotency-Key
   * @request GET:/idempotency-keys/{key}
   * @secure
   */
  export namespace ReadIdempotencyKey {
    export type RequestParams = {
      /**
       * The key, percent-encoded, with or without quotes.
       * @minLength 1
       * @maxLength 512
       */
      key: string;
    };
    export type RequestQuery = {
      /**
       * The operationId of this document.
       * @default "create_payment"
       */
      operation?:
        | "create_payment"
        | "refund_payment"
        | "create_order"
        | "raise_invoice"
        | "create_export"
        | "issue_api_key"
        | "create_subscription"
        | "rotate_api_key"
        | "replay_subscription";
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = IdempotencyKey;
  }
}

export namespace ApiKeys {
  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope keys:manage. An Idempotency-Key makes the request safe to repeat. Rate class: default. Deadline: 10 s.
   * @tags API keys
   * @name IssueApiKey
   * @summary Issue an API key; the response is the only one that shows its secret
   * @request POST:/api-keys
   * @secure
   */
  export namespace IssueApiKey {
    export type RequestParams = {};
    export type RequestQuery = {};
    export type RequestBody = NewApiKey;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A key that the caller chooses, one per intent, with or without quotes. The same key with the same request has one effect.
       * @pattern ^(?:[!#-~]{1,255}|"(?:[!#-[\]-~]|\\["\\]){1,255}")$
       * @example "5f0c6a52-9d1e-4a57-8f4e-0d6a1b2c3d4e"
       */
      "Idempotency-Key"?: string;
    };
    export type ResponseBody = ApiKeyWithSecret;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope keys:manage. Items are ordered by created_at (descending), then id (descending). Rate class: default. Deadline: 10 s.
   * @tags API keys
   * @name ListApiKeys
   * @summary List the API keys of the tenant, newest first, without their secrets
   * @request GET:/api-keys
   * @secure
   */
  export namespace ListApiKeys {
    export type RequestParams = {};
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
      /** Only items that were created after this time. */
      created_after?: TimeParameter;
      /** Only items that were created before this time. */
      created_before?: TimeParameter;
      /** Only items in this state. */
      state?: "active" | "revoked" | "expired";
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A Ledger-Position: the list must be complete up to this position, else 503 projection_behind.
       * @pattern ^\d{1,19}$
       */
      "If-Min-Position"?: string;
      /**
       * RFC 7240. `wait=n`: wait up to n seconds. Other preferences are ignored.
       * @example "wait=5"
       */
      Prefer?: string;
    };
    export type ResponseBody = {
      items: ApiKey[];
      page: {
        next_cursor: string | null;
        has_more: boolean;
        /** The position of the log up to which the list is complete. */
        as_of_position: string;
      };
    };
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope keys:manage. Rate class: default. Deadline: 10 s.
   * @tags API keys
   * @name ReadApiKey
   * @summary Read an API key, without its secret
   * @request GET:/api-keys/{id}
   * @secure
   */
  export namespace ReadApiKey {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^key_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * The ETag of the caller’s copy: 304 if the resource still has that version.
       * @pattern ^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$
       */
      "If-None-Match"?: string;
    };
    export type ResponseBody = ApiKey;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope keys:manage. Rate class: default. Deadline: 10 s.
   * @tags API keys
   * @name RevokeApiKey
   * @summary Revoke an API key; it stops working within seconds
   * @request DELETE:/api-keys/{id}
   * @secure
   */
  export namespace RevokeApiKey {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^key_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = void;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope keys:manage. An Idempotency-Key makes the request safe to repeat. Rate class: default. Deadline: 10 s.
   * @tags API keys
   * @name RotateApiKey
   * @summary Rotate an API key: it gets a new secret, and the previous one works for a limited time
   * @request POST:/api-keys/{id}:rotate
   * @secure
   */
  export namespace RotateApiKey {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^key_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = {
      /**
       * @min 0
       * @max 604800
       * @default 86400
       */
      overlap_seconds?: number;
    };
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A key that the caller chooses, one per intent, with or without quotes. The same key with the same request has one effect.
       * @pattern ^(?:[!#-~]{1,255}|"(?:[!#-[\]-~]|\\["\\]){1,255}")$
       * @example "5f0c6a52-9d1e-4a57-8f4e-0d6a1b2c3d4e"
       */
      "Idempotency-Key"?: string;
    };
    export type ResponseBody = ApiKeyWithSecret;
  }
}

export namespace Events {
  /**
   * @description Each type requires the read scope of its resource: orders:read, invoices:read, payments:read, and exports:read for export.completed. Types that the credential may not read are left out; one that is named in type is refused (403). A stream ends when one of these scopes is taken from its reader: it resumes with Last-Event-ID, without that type. Permitted with a user’s token or a workload’s token or an API key that has the scope events:read. Items are ordered by position. Rate class: default. Deadline: 10 s.
   * @tags Events
   * @name ListEvents
   * @summary Read the published facts, as a page or as a stream of server-sent events
   * @request GET:/events
   * @secure
   */
  export namespace ListEvents {
    export type RequestParams = {};
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
      /** Only facts of these types, separated by commas. */
      type?:
        | "order.created"
        | "order.cancelled"
        | "invoice.approved"
        | "invoice.paid"
        | "invoice.voided"
        | "payment.succeeded"
        | "payment.failed"
        | "payment.refunded"
        | "export.completed"
        | "ledger.manifest";
      /**
       * Only items of this subject.
       * @minLength 1
       * @maxLength 500
       */
      subject?: string;
      /**
       * Start at this position of the log; facts of earlier positions that are released later are included.
       * @pattern ^\d{1,19}$
       */
      from_position?: string;
      /** Start with the facts of this time and later ones. */
      from_time?: TimeParameter;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /** The id of the last event that the caller received; the stream continues after it. */
      "Last-Event-ID"?: string;
    };
    export type ResponseBody = {
      items: CloudEvent[];
      page: {
        /** Always present. A reader that follows it misses no fact that it may read; at the end of the log it waits for new ones. Facts that were left out for want of a scope are not sent later: with the scope, read their type from the beginning. */
        next_cursor: string;
        /** May be true of a page without items, when the filters excluded many facts: continue with the cursor. */
        has_more: boolean;
        as_of_position: string;
      };
    };
  }

  /**
   * @description A range has at most 20000 facts of the tenant, of all topics together. A longer history is proved in several ranges, one after the other. Permitted with a user’s token or a workload’s token or an API key that has the scope events:read. Rate class: default. Deadline: 10 s.
   * @tags Events
   * @name ReadEventsManifest
   * @summary Count and hash the published facts of a range of positions, to prove a copy complete
   * @request GET:/events/manifest
   * @secure
   */
  export namespace ReadEventsManifest {
    export type RequestParams = {};
    export type RequestQuery = {
      /** The topic; by default all topics whose facts the credential may read, with an item for each. */
      topic?:
        | "ledger.order.v1"
        | "ledger.invoice.v1"
        | "ledger.payment.v1"
        | "ledger.operation.v1";
      /**
       * The first position of the range; 0 by default.
       * @pattern ^\d{1,19}$
       */
      from?: string;
      /**
       * The last position of the range, inclusive; by default the last one whose facts are known, or that of the fact with the number 20000: to_position says so, and the next range begins after it.
       * @pattern ^\d{1,19}$
       */
      to?: string;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A Ledger-Position: the list must be complete up to this position, else 503 projection_behind.
       * @pattern ^\d{1,19}$
       */
      "If-Min-Position"?: string;
      /**
       * RFC 7240. `wait=n`: wait up to n seconds. Other preferences are ignored.
       * @example "wait=5"
       */
      Prefer?: string;
    };
    export type ResponseBody = {
      items: FactManifest[];
    };
  }
}

export namespace Subscriptions {
  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope events:subscribe. An Idempotency-Key makes the request safe to repeat. Rate class: default. Deadline: 10 s.
   * @tags Subscriptions
   * @name CreateSubscription
   * @summary Create a subscription, which delivers facts to a Kafka topic of its own
   * @request POST:/subscriptions
   * @secure
   */
  export namespace CreateSubscription {
    export type RequestParams = {};
    export type RequestQuery = {};
    export type RequestBody = NewSubscription;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A key that the caller chooses, one per intent, with or without quotes. The same key with the same request has one effect.
       * @pattern ^(?:[!#-~]{1,255}|"(?:[!#-[\]-~]|\\["\\]){1,255}")$
       * @example "5f0c6a52-9d1e-4a57-8f4e-0d6a1b2c3d4e"
       */
      "Idempotency-Key"?: string;
    };
    export type ResponseBody = Subscription;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope events:subscribe. Items are ordered by created_at (descending), then id (descending). Rate class: default. Deadline: 10 s.
   * @tags Subscriptions
   * @name ListSubscriptions
   * @summary List the subscriptions of the tenant, newest first
   * @request GET:/subscriptions
   * @secure
   */
  export namespace ListSubscriptions {
    export type RequestParams = {};
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
      /** Only items that were created after this time. */
      created_after?: TimeParameter;
      /** Only items that were created before this time. */
      created_before?: TimeParameter;
      /** Only items in this state. */
      state?: "active" | "paused" | "stopped";
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A Ledger-Position: the list must be complete up to this position, else 503 projection_behind.
       * @pattern ^\d{1,19}$
       */
      "If-Min-Position"?: string;
      /**
       * RFC 7240. `wait=n`: wait up to n seconds. Other preferences are ignored.
       * @example "wait=5"
       */
      Prefer?: string;
    };
    export type ResponseBody = {
      items: Subscription[];
      page: {
        next_cursor: string | null;
        has_more: boolean;
        /** The position of the log up to which the list is complete. */
        as_of_position: string;
      };
    };
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope events:subscribe. Rate class: default. Deadline: 10 s.
   * @tags Subscriptions
   * @name ReadSubscription
   * @summary Read a subscription and the progress of its delivery
   * @request GET:/subscriptions/{id}
   * @secure
   */
  export namespace ReadSubscription {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^sub_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * The ETag of the caller’s copy: 304 if the resource still has that version.
       * @pattern ^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$
       */
      "If-None-Match"?: string;
    };
    export type ResponseBody = Subscription;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope events:subscribe. Rate class: default. Deadline: 10 s.
   * @tags Subscriptions
   * @name DeleteSubscription
   * @summary Delete a subscription together with its topics
   * @request DELETE:/subscriptions/{id}
   * @secure
   */
  export namespace DeleteSubscription {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^sub_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = void;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope events:subscribe. Rate class: default. Deadline: 10 s.
   * @tags Subscriptions
   * @name PauseSubscription
   * @summary Pause the delivery; a stopped subscription is returned unchanged
   * @request POST:/subscriptions/{id}:pause
   * @secure
   */
  export namespace PauseSubscription {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^sub_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = object;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = Subscription;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope events:subscribe. Rate class: default. Deadline: 10 s.
   * @tags Subscriptions
   * @name ResumeSubscription
   * @summary Resume the delivery where it was paused, or where it was stopped once its creator is permitted again
   * @request POST:/subscriptions/{id}:resume
   * @secure
   */
  export namespace ResumeSubscription {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^sub_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = object;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = Subscription;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope events:subscribe. An Idempotency-Key makes the request safe to repeat. Rate class: replays. Deadline: 10 s.
   * @tags Subscriptions
   * @name ReplaySubscription
   * @summary Deliver the facts again from an earlier position, byte for byte the same; it replaces a replay in progress
   * @request POST:/subscriptions/{id}:replay
   * @secure
   */
  export namespace ReplaySubscription {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^sub_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {};
    export type RequestBody = NewReplay;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A key that the caller chooses, one per intent, with or without quotes. The same key with the same request has one effect.
       * @pattern ^(?:[!#-~]{1,255}|"(?:[!#-[\]-~]|\\["\\]){1,255}")$
       * @example "5f0c6a52-9d1e-4a57-8f4e-0d6a1b2c3d4e"
       */
      "Idempotency-Key"?: string;
    };
    export type ResponseBody = Operation;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope events:subscribe. Items are ordered by position. Rate class: default. Deadline: 10 s.
   * @tags Subscriptions
   * @name ListDeadLetters
   * @summary List the facts that could not be delivered, and the later ones of the same keys, in the order of delivery
   * @request GET:/subscriptions/{id}/dead-letters
   * @secure
   */
  export namespace ListDeadLetters {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^sub_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = {
      items: DeadLetter[];
      page: {
        next_cursor: string | null;
        has_more: boolean;
        /** The position of the log up to which the list is complete. */
        as_of_position: string;
      };
    };
  }
}

export namespace Accounts {
  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope ledger:read. Items are ordered by code. Rate class: default. Deadline: 10 s.
   * @tags Books
   * @name ListAccounts
   * @summary List the accounts that have entries, with their balances
   * @request GET:/accounts
   * @secure
   */
  export namespace ListAccounts {
    export type RequestParams = {};
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
      /** The books as they were at this time; entries of the last ten seconds may still arrive. 503 while the books lack events. */
      as_of?: TimeParameter;
      /**
       * The books as of this position of the log. Not together with as_of.
       * @pattern ^\d{1,19}$
       */
      as_of_position?: string;
      /** Only items in this currency. */
      currency?: Currency;
      /**
       * Only receivables of this customer.
       * @minLength 1
       * @maxLength 500
       */
      customer_reference?: string;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A Ledger-Position: the list must be complete up to this position, else 503 projection_behind.
       * @pattern ^\d{1,19}$
       */
      "If-Min-Position"?: string;
      /**
       * RFC 7240. `wait=n`: wait up to n seconds. Other preferences are ignored.
       * @example "wait=5"
       */
      Prefer?: string;
    };
    export type ResponseBody = {
      items: Account[];
      page: {
        next_cursor: string | null;
        has_more: boolean;
        /** The position of the log up to which the list is complete. */
        as_of_position: string;
      };
    };
  }

  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope ledger:read. Rate class: default. Deadline: 10 s.
   * @tags Books
   * @name ReadAccount
   * @summary Read an account with its balances
   * @request GET:/accounts/{code}
   * @secure
   */
  export namespace ReadAccount {
    export type RequestParams = {
      /**
       * The code of an account, such as cash.USD. That of receivables ends with a token of the customer reference: find it by GET /accounts?customer_reference=.
       * @pattern ^[a-z-]{1,40}\.[A-Z]{3}(\.[A-Za-z0-9._~-]{1,120})?$
       */
      code: string;
    };
    export type RequestQuery = {
      /** The books as they were at this time; entries of the last ten seconds may still arrive. 503 while the books lack events. */
      as_of?: TimeParameter;
      /**
       * The books as of this position of the log. Not together with as_of.
       * @pattern ^\d{1,19}$
       */
      as_of_position?: string;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * The ETag of the caller’s copy: 304 if the resource still has that version.
       * @pattern ^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$
       */
      "If-None-Match"?: string;
      /**
       * A Ledger-Position: the list must be complete up to this position, else 503 projection_behind.
       * @pattern ^\d{1,19}$
       */
      "If-Min-Position"?: string;
      /**
       * RFC 7240. `wait=n`: wait up to n seconds. Other preferences are ignored.
       * @example "wait=5"
       */
      Prefer?: string;
    };
    export type ResponseBody = Account;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope ledger:read. Items are ordered by position (descending). Rate class: default. Deadline: 10 s.
   * @tags Books
   * @name ListAccountEntries
   * @summary List the journal entries with a posting to the account, newest first
   * @request GET:/accounts/{code}/entries
   * @secure
   */
  export namespace ListAccountEntries {
    export type RequestParams = {
      /**
       * The code of an account, such as cash.USD. That of receivables ends with a token of the customer reference: find it by GET /accounts?customer_reference=.
       * @pattern ^[a-z-]{1,40}\.[A-Z]{3}(\.[A-Za-z0-9._~-]{1,120})?$
       */
      code: string;
    };
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
      /** The books as they were at this time; entries of the last ten seconds may still arrive. 503 while the books lack events. */
      as_of?: TimeParameter;
      /**
       * The books as of this position of the log. Not together with as_of.
       * @pattern ^\d{1,19}$
       */
      as_of_position?: string;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A Ledger-Position: the list must be complete up to this position, else 503 projection_behind.
       * @pattern ^\d{1,19}$
       */
      "If-Min-Position"?: string;
      /**
       * RFC 7240. `wait=n`: wait up to n seconds. Other preferences are ignored.
       * @example "wait=5"
       */
      Prefer?: string;
    };
    export type ResponseBody = {
      items: JournalEntry[];
      page: {
        next_cursor: string | null;
        has_more: boolean;
        /** The position of the log up to which the list is complete. */
        as_of_position: string;
      };
    };
  }
}

export namespace TrialBalance {
  /**
   * @description In each currency the debits of all accounts are their credits. All pages are of one position. Permitted with a user’s token or a workload’s token or an API key that has the scope ledger:read. Items are ordered by account. Rate class: default. Deadline: 10 s.
   * @tags Books
   * @name ReadTrialBalance
   * @summary Read the debits and credits of every account
   * @request GET:/trial-balance
   * @secure
   */
  export namespace ReadTrialBalance {
    export type RequestParams = {};
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
      /** The books as they were at this time; entries of the last ten seconds may still arrive. 503 while the books lack events. */
      as_of?: TimeParameter;
      /**
       * The books as of this position of the log. Not together with as_of.
       * @pattern ^\d{1,19}$
       */
      as_of_position?: string;
      /** Only items in this currency. */
      currency?: Currency;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A Ledger-Position: the list must be complete up to this position, else 503 projection_behind.
       * @pattern ^\d{1,19}$
       */
      "If-Min-Position"?: string;
      /**
       * RFC 7240. `wait=n`: wait up to n seconds. Other preferences are ignored.
       * @example "wait=5"
       */
      Prefer?: string;
    };
    export type ResponseBody = {
      items: TrialBalanceRow[];
      page: {
        next_cursor: string | null;
        has_more: boolean;
        /** The position of the log up to which the list is complete. */
        as_of_position: string;
      };
    };
  }
}

export namespace JournalEntries {
  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope ledger:read. Items are ordered by position (descending). Rate class: default. Deadline: 10 s.
   * @tags Books
   * @name ListJournalEntries
   * @summary List the entries of the journal, newest first
   * @request GET:/journal-entries
   * @secure
   */
  export namespace ListJournalEntries {
    export type RequestParams = {};
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
      /** The books as they were at this time; entries of the last ten seconds may still arrive. 503 while the books lack events. */
      as_of?: TimeParameter;
      /**
       * The books as of this position of the log. Not together with as_of.
       * @pattern ^\d{1,19}$
       */
      as_of_position?: string;
      /**
       * Only entries with a posting to this account.
       * @pattern ^[a-z-]{1,40}\.[A-Z]{3}(\.[A-Za-z0-9._~-]{1,120})?$
       */
      account?: string;
      /**
       * Only items of this order.
       * @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$
       */
      order_id?: string;
      /**
       * Only items of this invoice.
       * @pattern ^inv_[0-9A-HJKMNP-TV-Z]{26}$
       */
      invoice_id?: string;
      /**
       * Only items of this payment.
       * @pattern ^pay_[0-9A-HJKMNP-TV-Z]{26}$
       */
      payment_id?: string;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A Ledger-Position: the list must be complete up to this position, else 503 projection_behind.
       * @pattern ^\d{1,19}$
       */
      "If-Min-Position"?: string;
      /**
       * RFC 7240. `wait=n`: wait up to n seconds. Other preferences are ignored.
       * @example "wait=5"
       */
      Prefer?: string;
    };
    export type ResponseBody = {
      items: JournalEntry[];
      page: {
        next_cursor: string | null;
        has_more: boolean;
        /** The position of the log up to which the list is complete. */
        as_of_position: string;
      };
    };
  }

  /**
   * @description Permitted with a user’s token or a workload’s token or an API key that has the scope ledger:read. Rate class: default. Deadline: 10 s.
   * @tags Books
   * @name ReadJournalEntry
   * @summary Read an entry of the journal
   * @request GET:/journal-entries/{id}
   * @secure
   */
  export namespace ReadJournalEntry {
    export type RequestParams = {
      /**
       * The id of the resource.
       * @pattern ^ent_[0-9A-HJKMNP-TV-Z]{26}$
       */
      id: string;
    };
    export type RequestQuery = {
      /** The books as they were at this time; entries of the last ten seconds may still arrive. 503 while the books lack events. */
      as_of?: TimeParameter;
      /**
       * The books as of this position of the log. Not together with as_of.
       * @pattern ^\d{1,19}$
       */
      as_of_position?: string;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * The ETag of the caller’s copy: 304 if the resource still has that version.
       * @pattern ^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$
       */
      "If-None-Match"?: string;
      /**
       * A Ledger-Position: the list must be complete up to this position, else 503 projection_behind.
       * @pattern ^\d{1,19}$
       */
      "If-Min-Position"?: string;
      /**
       * RFC 7240. `wait=n`: wait up to n seconds. Other preferences are ignored.
       * @example "wait=5"
       */
      Prefer?: string;
    };
    export type ResponseBody = JournalEntry;
  }
}

export namespace AuditRecords {
  /**
   * @description Looking at them is an audit record itself. Permitted with a user’s token or a workload’s token or an API key that has the scope audit:read. Items are ordered by created_at (descending), then id (descending). Rate class: default. Deadline: 10 s.
   * @tags Audit
   * @name ListAuditRecords
   * @summary List the decisions on sensitive operations, newest first
   * @request GET:/audit-records
   * @secure
   */
  export namespace ListAuditRecords {
    export type RequestParams = {};
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
      /** Only items that were created after this time. */
      created_after?: TimeParameter;
      /** Only items that were created before this time. */
      created_before?: TimeParameter;
      /** Only grants, or only denials. */
      decision?: "granted" | "denied";
      /**
       * The operationId of this document.
       * @minLength 1
       * @maxLength 500
       */
      operation?: string;
      /**
       * Only items of this subject.
       * @minLength 1
       * @maxLength 500
       */
      subject?: string;
      /**
       * Only decisions about this resource.
       * @minLength 1
       * @maxLength 500
       */
      resource?: string;
      /**
       * Only decisions on the request with this correlation id.
       * @minLength 1
       * @maxLength 500
       */
      correlation_id?: string;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
      /**
       * A Ledger-Position: the list must be complete up to this position, else 503 projection_behind.
       * @pattern ^\d{1,19}$
       */
      "If-Min-Position"?: string;
      /**
       * RFC 7240. `wait=n`: wait up to n seconds. Other preferences are ignored.
       * @example "wait=5"
       */
      Prefer?: string;
    };
    export type ResponseBody = {
      items: AuditRecord[];
      page: {
        next_cursor: string | null;
        has_more: boolean;
        /** The position of the log up to which the list is complete. */
        as_of_position: string;
      };
    };
  }
}

export namespace Projections {
  /**
   * @description For callers of the tenant of the operators (setting OPERATORS_TENANT). Permitted with a user’s token or a workload’s token that has the scope projections:operate. Rate class: default. Deadline: 10 s.
   * @tags Projections
   * @name ListProjections
   * @summary List the read models of the installation, how far they are behind the log, and their newest rebuilds
   * @request GET:/projections
   * @secure
   */
  export namespace ListProjections {
    export type RequestParams = {};
    export type RequestQuery = {};
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = ProjectionList;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope projections:operate. Rate class: default. Deadline: 10 s.
   * @tags Projections
   * @name RebuildProjection
   * @summary Build new tables from the log beside the live ones, compare them, and switch if they are equal
   * @request POST:/projections/{name}:rebuild
   * @secure
   */
  export namespace RebuildProjection {
    export type RequestParams = {
      /** The name of a schema: type and version of a fact. */
      name:
        | "orders"
        | "invoices"
        | "payments"
        | "operations"
        | "apiKeys"
        | "subscriptions"
        | "facts"
        | "audit"
        | "books";
    };
    export type RequestQuery = {};
    export type RequestBody = {
      /**
       * Switches the tables of the newest rebuild, which was refused.
       * @default false
       */
      accept_differences?: boolean;
      /**
       * Required to accept differences.
       * @minLength 1
       * @maxLength 500
       */
      reason?: string;
    };
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = ProjectionRebuild;
  }

  /**
   * @description A rebuild that is under way compares too, and is returned in place of another one. Permitted with a user’s token or a workload’s token that has the scope projections:operate. Rate class: default. Deadline: 10 s.
   * @tags Projections
   * @name VerifyProjection
   * @summary Compare the tables of a read model with new ones from the log, and change nothing
   * @request POST:/projections/{name}:verify
   * @secure
   */
  export namespace VerifyProjection {
    export type RequestParams = {
      /** The name of a schema: type and version of a fact. */
      name:
        | "orders"
        | "invoices"
        | "payments"
        | "operations"
        | "apiKeys"
        | "subscriptions"
        | "facts"
        | "audit"
        | "books";
    };
    export type RequestQuery = {};
    export type RequestBody = object;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = ProjectionRebuild;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope projections:operate. Rate class: default. Deadline: 10 s.
   * @tags Projections
   * @name RollBackProjection
   * @summary Put the tables before the last rebuild back, with the events since
   * @request POST:/projections/{name}:rollback
   * @secure
   */
  export namespace RollBackProjection {
    export type RequestParams = {
      /** The name of a schema: type and version of a fact. */
      name:
        | "orders"
        | "invoices"
        | "payments"
        | "operations"
        | "apiKeys"
        | "subscriptions"
        | "facts"
        | "audit"
        | "books";
    };
    export type RequestQuery = {};
    export type RequestBody = object;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = ProjectionRebuild;
  }

  /**
   * @description Permitted with a user’s token or a workload’s token that has the scope projections:operate. Rate class: default. Deadline: 10 s.
   * @tags Projections
   * @name CancelProjectionRebuild
   * @summary End the rebuild of a read model; the live tables stay
   * @request POST:/projections/{name}:cancel
   * @secure
   */
  export namespace CancelProjectionRebuild {
    export type RequestParams = {
      /** The name of a schema: type and version of a fact. */
      name:
        | "orders"
        | "invoices"
        | "payments"
        | "operations"
        | "apiKeys"
        | "subscriptions"
        | "facts"
        | "audit"
        | "books";
    };
    export type RequestQuery = {};
    export type RequestBody = object;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = ProjectionRebuild;
  }
}

export namespace Audit {
  /**
   * @description The heads are also in a file outside the databases. Looking at them is an audit record. Permitted with a user’s token or a workload’s token or an API key that has the scope audit:read. Items are ordered by generation (descending), then tree_size (descending). Rate class: default. Deadline: 10 s.
   * @tags Audit
   * @name ListAuditHeads
   * @summary List the signed heads of the tree over all events, newest first
   * @request GET:/audit/heads
   * @secure
   */
  export namespace ListAuditHeads {
    export type RequestParams = {};
    export type RequestQuery = {
      /**
       * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
       * @min 1
       * @max 100
       * @default 25
       */
      limit?: number;
      /**
       * The cursor of the page before, with the same filters; the first page by default.
       * @minLength 1
       * @maxLength 1024
       */
      cursor?: string;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = {
      items: AuditHead[];
      page: {
        next_cursor: string | null;
        has_more: boolean;
        /** The position of the log up to which the list is complete. */
        as_of_position: string;
      };
    };
  }

  /**
   * @description The inclusion proof of an event of the caller’s tenant, with the signed head that it leads to. An event is sealed some seconds after it was stored; until then it is a 404. Events of API keys and idempotency records are withheld, as histories withhold them. Looking at a proof is an audit record. Permitted with a user’s token or a workload’s token or an API key that has the scope audit:read. Rate class: default. Deadline: 10 s.
   * @tags Audit
   * @name ReadAuditProof
   * @summary Prove that an event is in the log as it was stored
   * @request GET:/audit/proof/{event_id}
   * @secure
   */
  export namespace ReadAuditProof {
    export type RequestParams = {
      /**
       * The id of an event, as histories and facts have it.
       * @format uuid
       * @pattern ^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$
       */
      eventId: string;
    };
    export type RequestQuery = {
      /**
       * The size of the signed head to prove against; the newest one by default.
       * @pattern ^\d{1,19}$
       */
      tree_size?: string;
    };
    export type RequestBody = never;
    export type RequestHeaders = {
      /**
       * An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.
       * @pattern ^[A-Za-z0-9._-]{8,128}$
       */
      "X-Correlation-ID"?: string;
      /** The dated contract of the request and its response; by default the oldest one that is served. */
      "API-Version": "2026-11-22";
      /**
       * W3C Trace Context. A malformed one is ignored.
       * @pattern ^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$
       */
      traceparent?: string;
    };
    export type ResponseBody = AuditProof;
  }
}

export type QueryParamsType = Record<string | number, any>;
export type ResponseFormat = keyof Omit<Body, "body" | "bodyUsed">;

export interface FullRequestParams extends Omit<RequestInit, "body"> {
  /** set parameter to `true` for call `securityWorker` for this request */
  secure?: boolean;
  /** request path */
  path: string;
  /** content type of request body */
  type?: ContentType;
  /** query params */
  query?: QueryParamsType;
  /** format of response (i.e. response.json() -> format: "json") */
  format?: ResponseFormat;
  /** request body */
  body?: unknown;
  /** base url */
  baseUrl?: string;
  /** request cancellation token */
  cancelToken?: CancelToken;
}

export type RequestParams = Omit<
  FullRequestParams,
  "body" | "method" | "query" | "path"
>;

export interface ApiConfig<SecurityDataType = unknown> {
  baseUrl?: string;
  baseApiParams?: Omit<RequestParams, "baseUrl" | "cancelToken" | "signal">;
  securityWorker?: (
    securityData: SecurityDataType | null,
  ) => Promise<RequestParams | void> | RequestParams | void;
  customFetch?: typeof fetch;
}

export interface HttpResponse<D extends unknown, E extends unknown = unknown>
  extends Response {
  data: D;
  error: E;
}

type CancelToken = Symbol | string | number;

export type ContentType =
  | "application/json"
  | "application/vnd.api+json"
  | "multipart/form-data"
  | "application/x-www-form-urlencoded"
  | "text/plain";

export class HttpClient<SecurityDataType = unknown> {
  public baseUrl: string = "/";
  private securityData: SecurityDataType | null = null;
  private securityWorker?: ApiConfig<SecurityDataType>["securityWorker"];
  private abortControllers = new Map<CancelToken, AbortController>();
  private customFetch = (...fetchParams: Parameters<typeof fetch>) =>
    fetch(...fetchParams);

  private baseApiParams: RequestParams = {
    credentials: "same-origin",
    headers: {},
    redirect: "follow",
    referrerPolicy: "no-referrer",
  };

  constructor(apiConfig: ApiConfig<SecurityDataType> = {}) {
    Object.assign(this, apiConfig);
  }

  public setSecurityData = (data: SecurityDataType | null) => {
    this.securityData = data;
  };

  protected encodeQueryParam(key: string, value: any) {
    const encodedKey = encodeURIComponent(key);
    return `${encodedKey}=${encodeURIComponent(typeof value === "number" ? value : `${value}`)}`;
  }

  protected addQueryParam(query: QueryParamsType, key: string) {
    return this.encodeQueryParam(key, query[key]);
  }

  protected addArrayQueryParam(query: QueryParamsType, key: string) {
    const value = query[key];
    return value.map((v: any) => this.encodeQueryParam(key, v)).join("&");
  }

  protected toQueryString(rawQuery?: QueryParamsType): string {
    const query = rawQuery || {};
    const keys = Object.keys(query).filter(
      (key) => "undefined" !== typeof query[key],
    );
    return keys
      .map((key) =>
        Array.isArray(query[key])
          ? this.addArrayQueryParam(query, key)
          : this.addQueryParam(query, key),
      )
      .join("&");
  }

  protected addQueryParams(rawQuery?: QueryParamsType): string {
    const queryString = this.toQueryString(rawQuery);
    return queryString ? `?${queryString}` : "";
  }

  private contentFormatters: Record<ContentType, (input: any) => any> = {
    ["application/json"]: (input: any) =>
      input !== null && (typeof input === "object" || typeof input === "string")
        ? JSON.stringify(input)
        : input,
    ["application/vnd.api+json"]: (input: any) =>
      input !== null && (typeof input === "object" || typeof input === "string")
        ? JSON.stringify(input)
        : input,
    ["text/plain"]: (input: any) =>
      input !== null && typeof input !== "string"
        ? JSON.stringify(input)
        : input,
    ["multipart/form-data"]: (input: any) => {
      if (input instanceof FormData) {
        return input;
      }

      return Object.keys(input || {}).reduce((formData, key) => {
        const property = input[key];
        formData.append(
          key,
          property instanceof Blob
            ? property
            : typeof property === "object" && property !== null
              ? JSON.stringify(property)
              : `${property}`,
        );
        return formData;
      }, new FormData());
    },
    ["application/x-www-form-urlencoded"]: (input: any) =>
      this.toQueryString(input),
  };

  protected mergeRequestParams(
    params1: RequestParams,
    params2?: RequestParams,
  ): RequestParams {
    return {
      ...this.baseApiParams,
      ...params1,
      ...(params2 || {}),
      headers: {
        ...(this.baseApiParams.headers || {}),
        ...(params1.headers || {}),
        ...((params2 && params2.headers) || {}),
      },
    };
  }

  protected createAbortSignal = (
    cancelToken: CancelToken,
  ): AbortSignal | undefined => {
    if (this.abortControllers.has(cancelToken)) {
      const abortController = this.abortControllers.get(cancelToken);
      if (abortController) {
        return abortController.signal;
      }
      return void 0;
    }

    const abortController = new AbortController();
    this.abortControllers.set(cancelToken, abortController);
    return abortController.signal;
  };

  public abortRequest = (cancelToken: CancelToken) => {
    const abortController = this.abortControllers.get(cancelToken);

    if (abortController) {
      abortController.abort();
      this.abortControllers.delete(cancelToken);
    }
  };

  public request = async <T = any, E = any>({
    body,
    secure,
    path,
    type,
    query,
    format,
    baseUrl,
    cancelToken,
    ...params
  }: FullRequestParams): Promise<HttpResponse<T, E>> => {
    const secureParams =
      ((typeof secure === "boolean" ? secure : this.baseApiParams.secure) &&
        this.securityWorker &&
        (await this.securityWorker(this.securityData))) ||
      {};
    const requestParams = this.mergeRequestParams(params, secureParams);
    const queryString = query && this.toQueryString(query);
    const payloadFormatter = this.contentFormatters[type || "application/json"];
    const responseFormat = format || requestParams.format;

    return this.customFetch(
      `${baseUrl || this.baseUrl || ""}${path}${queryString ? `?${queryString}` : ""}`,
      {
        ...requestParams,
        headers: {
          ...(requestParams.headers || {}),
          ...(type && type !== "multipart/form-data"
            ? { "Content-Type": type }
            : {}),
        },
        signal:
          (cancelToken
            ? this.createAbortSignal(cancelToken)
            : requestParams.signal) || null,
        body:
          typeof body === "undefined" || body === null
            ? null
            : payloadFormatter(body),
      },
    ).then(async (response) => {
      const r = response as HttpResponse<T, E>;
      r.data = null as unknown as T;
      r.error = null as unknown as E;

      const responseToParse = responseFormat ? response.clone() : response;
      const data = !responseFormat
        ? r
        : await responseToParse[responseFormat]()
            .then((data) => {
              if (r.ok) {
                r.data = data;
              } else {
                r.error = data;
              }
              return r;
            })
            .catch((e) => {
              r.error = e;
              return r;
            });

      if (cancelToken) {
        this.abortControllers.delete(cancelToken);
      }

      if (!response.ok) throw data;
      return data;
    });
  };
}

/**
 * @title Payment ledger
 * @version 2026-11-22
 * @license Apache-2.0 (https://www.apache.org/licenses/LICENSE-2.0)
 * @baseUrl /
 * @contact The owner of the contract, named in CONTRIBUTING.md
 *
 * Orders, invoices with approval, payments made exactly once per intent, published facts.
 */
export class Api<
  SecurityDataType extends unknown,
> extends HttpClient<SecurityDataType> {
  orders = {
    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope orders:write. An Idempotency-Key makes the request safe to repeat. Rate class: default. Deadline: 10 s.
     *
     * @tags Orders
     * @name CreateOrder
     * @summary Create an order
     * @request POST:/orders
     * @secure
     */
    createOrder: (data: NewOrder, params: RequestParams = {}) =>
      this.request<Order, Problem>({
        path: `/orders`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope orders:read. Items are ordered by created_at (descending), then id (descending). Rate class: default. Deadline: 10 s.
     *
     * @tags Orders
     * @name ListOrders
     * @summary List orders, newest first
     * @request GET:/orders
     * @secure
     */
    listOrders: (
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
        /** Only items that were created after this time. */
        created_after?: TimeParameter;
        /** Only items that were created before this time. */
        created_before?: TimeParameter;
        /** Only items in this state. */
        state?: "open" | "invoiced" | "completed" | "cancelled";
        /** Only items in this currency. */
        currency?: Currency;
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: Order[];
          page: {
            next_cursor: string | null;
            has_more: boolean;
            /** The position of the log up to which the list is complete. */
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/orders`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope orders:read. Rate class: default. Deadline: 10 s.
     *
     * @tags Orders
     * @name ReadOrder
     * @summary Read an order
     * @request GET:/orders/{id}
     * @secure
     */
    readOrder: (
      id: string,
      query?: {
        /** Returns the resource as it was at this time; 404 before its creation. */
        as_of?: TimeParameter;
      },
      params: RequestParams = {},
    ) =>
      this.request<Order, void | Problem>({
        path: `/orders/${encodeURIComponent(id)}`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope orders:write. The header If-Match is required. Rate class: default. Deadline: 10 s.
     *
     * @tags Orders
     * @name ChangeOrder
     * @summary Change members of an order
     * @request PATCH:/orders/{id}
     * @secure
     */
    changeOrder: (id: string, data: OrderPatch, params: RequestParams = {}) =>
      this.request<Order, Problem>({
        path: `/orders/${encodeURIComponent(id)}`,
        method: "PATCH",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope orders:write. The header If-Match is required. Rate class: default. Deadline: 10 s.
     *
     * @tags Orders
     * @name DeleteOrder
     * @summary Delete an order; its history remains readable
     * @request DELETE:/orders/{id}
     * @secure
     */
    deleteOrder: (id: string, params: RequestParams = {}) =>
      this.request<void, Problem>({
        path: `/orders/${encodeURIComponent(id)}`,
        method: "DELETE",
        secure: true,
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope orders:write. The header If-Match is required. Rate class: default. Deadline: 10 s.
     *
     * @tags Orders
     * @name CancelOrder
     * @summary Cancel an open order
     * @request POST:/orders/{id}:cancel
     * @secure
     */
    cancelOrder: (
      id: string,
      data?: {
        /** @default null */
        reason?: string | null;
      },
      params: RequestParams = {},
    ) =>
      this.request<Order, Problem>({
        path: `/orders/${encodeURIComponent(id)}:cancel`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope orders:read. Items are ordered by revision. Rate class: default. Deadline: 10 s.
     *
     * @tags History
     * @name ReadOrderHistory
     * @summary Everything that happened to the order, oldest first; also after it was deleted
     * @request GET:/orders/{id}/history
     * @secure
     */
    readOrderHistory: (
      id: string,
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: HistoryEntry[];
          page: {
            next_cursor: string | null;
            has_more: boolean;
            /** The position of the log up to which the list is complete. */
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/orders/${encodeURIComponent(id)}/history`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),
  };
  invoices = {
    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope invoices:write. An Idempotency-Key makes the request safe to repeat. Rate class: default. Deadline: 10 s.
     *
     * @tags Invoices
     * @name RaiseInvoice
     * @summary Raise an invoice from an open order
     * @request POST:/invoices
     * @secure
     */
    raiseInvoice: (data: NewInvoice, params: RequestParams = {}) =>
      this.request<Invoice, Problem>({
        path: `/invoices`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope invoices:read. Items are ordered by created_at (descending), then id (descending). Rate class: default. Deadline: 10 s.
     *
     * @tags Invoices
     * @name ListInvoices
     * @summary List invoices, newest first
     * @request GET:/invoices
     * @secure
     */
    listInvoices: (
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
        /** Only items that were created after this time. */
        created_after?: TimeParameter;
        /** Only items that were created before this time. */
        created_before?: TimeParameter;
        /** Only items in this state. */
        state?: "draft" | "approved" | "partially_paid" | "paid" | "voided";
        /** Only items in this currency. */
        currency?: Currency;
        /**
         * Only items of this order.
         * @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$
         */
        order_id?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: Invoice[];
          page: {
            next_cursor: string | null;
            has_more: boolean;
            /** The position of the log up to which the list is complete. */
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/invoices`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope invoices:read. Rate class: default. Deadline: 10 s.
     *
     * @tags Invoices
     * @name ReadInvoice
     * @summary Read an invoice
     * @request GET:/invoices/{id}
     * @secure
     */
    readInvoice: (
      id: string,
      query?: {
        /** Returns the resource as it was at this time; 404 before its creation. */
        as_of?: TimeParameter;
      },
      params: RequestParams = {},
    ) =>
      this.request<Invoice, void | Problem>({
        path: `/invoices/${encodeURIComponent(id)}`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope invoice:approve. The header If-Match is required. Rate class: default. Deadline: 10 s.
     *
     * @tags Invoices
     * @name ApproveInvoice
     * @summary Approve a draft invoice for payment
     * @request POST:/invoices/{id}:approve
     * @secure
     */
    approveInvoice: (id: string, data?: object, params: RequestParams = {}) =>
      this.request<Invoice, Problem>({
        path: `/invoices/${encodeURIComponent(id)}:approve`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope invoices:write. The header If-Match is required. Rate class: default. Deadline: 10 s.
     *
     * @tags Invoices
     * @name VoidInvoice
     * @summary Void an invoice that has no payments
     * @request POST:/invoices/{id}:void
     * @secure
     */
    voidInvoice: (
      id: string,
      data: {
        /**
         * @minLength 1
         * @maxLength 500
         */
        reason: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<Invoice, Problem>({
        path: `/invoices/${encodeURIComponent(id)}:void`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope invoices:read. Items are ordered by revision. Rate class: default. Deadline: 10 s.
     *
     * @tags History
     * @name ReadInvoiceHistory
     * @summary Everything that happened to the invoice, oldest first; also after it was deleted
     * @request GET:/invoices/{id}/history
     * @secure
     */
    readInvoiceHistory: (
      id: string,
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: HistoryEntry[];
          page: {
            next_cursor: string | null;
            has_more: boolean;
            /** The position of the log up to which the list is complete. */
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/invoices/${encodeURIComponent(id)}/history`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),
  };
  payments = {
    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope payments:write. The header Idempotency-Key is required. Rate class: payments. Deadline: 5 s.
     *
     * @tags Payments
     * @name CreatePayment
     * @summary Pay an invoice, exactly once per Idempotency-Key
     * @request POST:/payments
     * @secure
     */
    createPayment: (data: NewPayment, params: RequestParams = {}) =>
      this.request<Payment, Problem>({
        path: `/payments`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope payments:read. Items are ordered by created_at (descending), then id (descending). Rate class: default. Deadline: 10 s.
     *
     * @tags Payments
     * @name ListPayments
     * @summary List payments, newest first
     * @request GET:/payments
     * @secure
     */
    listPayments: (
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
        /** Only items that were created after this time. */
        created_after?: TimeParameter;
        /** Only items that were created before this time. */
        created_before?: TimeParameter;
        /** Only items in this state. */
        state?:
          | "pending"
          | "succeeded"
          | "failed"
          | "partially_refunded"
          | "refunded";
        /** Only items in this currency. */
        currency?: Currency;
        /**
         * Only the item with this reference.
         * @minLength 1
         * @maxLength 500
         */
        reference?: string;
        /**
         * Only items of this order.
         * @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$
         */
        order_id?: string;
        /**
         * Only items of this invoice.
         * @pattern ^inv_[0-9A-HJKMNP-TV-Z]{26}$
         */
        invoice_id?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: Payment[];
          page: {
            next_cursor: string | null;
            has_more: boolean;
            /** The position of the log up to which the list is complete. */
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/payments`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope payments:read. Rate class: default. Deadline: 10 s.
     *
     * @tags Payments
     * @name ReadPayment
     * @summary Read a payment
     * @request GET:/payments/{id}
     * @secure
     */
    readPayment: (
      id: string,
      query?: {
        /** Returns the resource as it was at this time; 404 before its creation. */
        as_of?: TimeParameter;
      },
      params: RequestParams = {},
    ) =>
      this.request<Payment, void | Problem>({
        path: `/payments/${encodeURIComponent(id)}`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a workload’s token that has the scope payments:settle. Rate class: default. Deadline: 10 s.
     *
     * @tags Payments
     * @name SettlePayment
     * @summary Settle a deferred payment; a repetition has no further effect
     * @request POST:/payments/{id}:settle
     * @secure
     */
    settlePayment: (id: string, data?: object, params: RequestParams = {}) =>
      this.request<Payment, Problem>({
        path: `/payments/${encodeURIComponent(id)}:settle`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a workload’s token that has the scope payments:settle. Rate class: default. Deadline: 10 s.
     *
     * @tags Payments
     * @name FailPayment
     * @summary Fail a deferred payment; its amount is due on the invoice again
     * @request POST:/payments/{id}:fail
     * @secure
     */
    failPayment: (
      id: string,
      data?: {
        /**
         * The reason of the failure, as a code of the system that settles payments.
         * @default "declined"
         * @pattern ^[a-z][a-z0-9_]{0,63}$
         */
        code?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<Payment, Problem>({
        path: `/payments/${encodeURIComponent(id)}:fail`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope payments:refund. The header Idempotency-Key is required. Rate class: default. Deadline: 10 s.
     *
     * @tags Payments
     * @name RefundPayment
     * @summary Refund a payment in part or in full, exactly once per Idempotency-Key
     * @request POST:/payments/{id}:refund
     * @secure
     */
    refundPayment: (
      id: string,
      data: {
        /** The amount to refund; "remaining" for the whole amount that is not yet refunded. */
        amount: number | "remaining";
        /**
         * @minLength 1
         * @maxLength 500
         */
        reason: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<Payment, Problem>({
        path: `/payments/${encodeURIComponent(id)}:refund`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope payments:read. Items are ordered by revision. Rate class: default. Deadline: 10 s.
     *
     * @tags History
     * @name ReadPaymentHistory
     * @summary Everything that happened to the payment, oldest first; also after it was deleted
     * @request GET:/payments/{id}/history
     * @secure
     */
    readPaymentHistory: (
      id: string,
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: HistoryEntry[];
          page: {
            next_cursor: string | null;
            has_more: boolean;
            /** The position of the log up to which the list is complete. */
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/payments/${encodeURIComponent(id)}/history`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),
  };
  exports = {
    /**
     * @description A file of journal_entries has one row for each posting, oldest first, with the balance of its account after the entry. With the filter account it is the statement of that account; created_after and created_before are bounds of the time of the entry: from created_after, which is included, to before created_before. Permitted with a user’s token or a workload’s token that has the scope exports:write. An Idempotency-Key makes the request safe to repeat. Rate class: exports. Deadline: 10 s.
     *
     * @tags Exports
     * @name CreateExport
     * @summary Export orders, invoices, payments or the journal to a file
     * @request POST:/exports
     * @secure
     */
    createExport: (data: NewExport, params: RequestParams = {}) =>
      this.request<Operation, Problem>({
        path: `/exports`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope exports:read. Rate class: default. Deadline: 10 s.
     *
     * @tags Exports
     * @name ReadExportManifest
     * @summary Read the manifest of an export: its contents and checksum
     * @request GET:/exports/{id}/manifest
     * @secure
     */
    readExportManifest: (id: string, params: RequestParams = {}) =>
      this.request<ExportManifest, void | Problem>({
        path: `/exports/${encodeURIComponent(id)}/manifest`,
        method: "GET",
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Whole, or the one range of bytes that Range names; several ranges are answered with the whole file. In a csv file a text that a spreadsheet would calculate, or that begins with an apostrophe, has one apostrophe before it: remove one from each text that begins with one, and it is as it was. A caller may download few files at once, 4 by default, and all callers of a tenant together 8. Permitted with a user’s token or a workload’s token or an API key that has the scope exports:read. Rate class: default. Deadline: 10 s.
     *
     * @tags Exports
     * @name ReadExport
     * @summary The file
     * @request GET:/exports/{id}/content
     * @secure
     */
    readExport: (id: string, params: RequestParams = {}) =>
      this.request<Blob, void | Problem>({
        path: `/exports/${encodeURIComponent(id)}/content`,
        method: "GET",
        secure: true,
        ...params,
      }),

    /**
     * @description The operation can still be read: its state is expired, and the content is answered with 410. An export that has not finished is cancelled. Deleting it again has no effect. Permitted with a user’s token or a workload’s token that has the scope exports:write. Rate class: default. Deadline: 10 s.
     *
     * @tags Exports
     * @name DeleteExport
     * @summary Delete the file of an export
     * @request DELETE:/exports/{id}
     * @secure
     */
    deleteExport: (id: string, params: RequestParams = {}) =>
      this.request<void, Problem>({
        path: `/exports/${encodeURIComponent(id)}`,
        method: "DELETE",
        secure: true,
        ...params,
      }),
  };
  operations = {
    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope exports:read. Items are ordered by created_at (descending), then id (descending). Rate class: default. Deadline: 10 s.
     *
     * @tags Operations
     * @name ListOperations
     * @summary List the operations of exports, newest first
     * @request GET:/operations
     * @secure
     */
    listOperations: (
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
        /** Only items that were created after this time. */
        created_after?: TimeParameter;
        /** Only items that were created before this time. */
        created_before?: TimeParameter;
        /** Only items in this state. */
        state?:
          | "pending"
          | "running"
          | "succeeded"
          | "failed"
          | "cancelled"
          | "expired";
        /** Only operations of this kind. */
        kind?: "export";
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: Operation[];
          page: {
            next_cursor: string | null;
            has_more: boolean;
            /** The position of the log up to which the list is complete. */
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/operations`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope exports:read or payments:read or events:subscribe. Rate class: default. Deadline: 10 s.
     *
     * @tags Operations
     * @name ReadOperation
     * @summary Read an operation: an export, a payment that was not decided at once, or a replay
     * @request GET:/operations/{id}
     * @secure
     */
    readOperation: (id: string, params: RequestParams = {}) =>
      this.request<Operation, void | Problem>({
        path: `/operations/${encodeURIComponent(id)}`,
        method: "GET",
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope exports:write. Rate class: default. Deadline: 10 s.
     *
     * @tags Operations
     * @name CancelOperation
     * @summary Cancel an export; one that has ended is returned unchanged
     * @request POST:/operations/{id}:cancel
     * @secure
     */
    cancelOperation: (id: string, data?: object, params: RequestParams = {}) =>
      this.request<Operation, Problem>({
        path: `/operations/${encodeURIComponent(id)}:cancel`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),
  };
  idempotencyKeys = {
    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope payments:read. Rate class: default. Deadline: 10 s.
     *
     * @tags Payments
     * @name ReadIdempotencyKey
     * @summary Read the outcome of the caller’s own Idempotency-Key
     * @request GET:/idempotency-keys/{key}
     * @secure
     */
    readIdempotencyKey: (
      key: string,
      query?: {
        /**
         * The operationId of this document.
         * @default "create_payment"
         */
        operation?:
          | "create_payment"
          | "refund_payment"
          | "create_order"
          | "raise_invoice"
          | "create_export"
          | "issue_api_key"
          | "create_subscription"
          | "rotate_api_key"
          | "replay_subscription";
      },
      params: RequestParams = {},
    ) =>
      this.request<IdempotencyKey, Problem>({
        path: `/idempotency-keys/${encodeURIComponent(key)}`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),
  };
  apiKeys = {
    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope keys:manage. An Idempotency-Key makes the request safe to repeat. Rate class: default. Deadline: 10 s.
     *
     * @tags API keys
     * @name IssueApiKey
     * @summary Issue an API key; the response is the only one that shows its secret
     * @request POST:/api-keys
     * @secure
     */
    issueApiKey: (data: NewApiKey, params: RequestParams = {}) =>
      this.request<ApiKeyWithSecret, Problem>({
        path: `/api-keys`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope keys:manage. Items are ordered by created_at (descending), then id (descending). Rate class: default. Deadline: 10 s.
     *
     * @tags API keys
     * @name ListApiKeys
     * @summary List the API keys of the tenant, newest first, without their secrets
     * @request GET:/api-keys
     * @secure
     */
    listApiKeys: (
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
        /** Only items that were created after this time. */
        created_after?: TimeParameter;
        /** Only items that were created before this time. */
        created_before?: TimeParameter;
        /** Only items in this state. */
        state?: "active" | "revoked" | "expired";
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: ApiKey[];
          page: {
            next_cursor: string | null;
            has_more: boolean;
            /** The position of the log up to which the list is complete. */
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/api-keys`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope keys:manage. Rate class: default. Deadline: 10 s.
     *
     * @tags API keys
     * @name ReadApiKey
     * @summary Read an API key, without its secret
     * @request GET:/api-keys/{id}
     * @secure
     */
    readApiKey: (id: string, params: RequestParams = {}) =>
      this.request<ApiKey, void | Problem>({
        path: `/api-keys/${encodeURIComponent(id)}`,
        method: "GET",
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope keys:manage. Rate class: default. Deadline: 10 s.
     *
     * @tags API keys
     * @name RevokeApiKey
     * @summary Revoke an API key; it stops working within seconds
     * @request DELETE:/api-keys/{id}
     * @secure
     */
    revokeApiKey: (id: string, params: RequestParams = {}) =>
      this.request<void, Problem>({
        path: `/api-keys/${encodeURIComponent(id)}`,
        method: "DELETE",
        secure: true,
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope keys:manage. An Idempotency-Key makes the request safe to repeat. Rate class: default. Deadline: 10 s.
     *
     * @tags API keys
     * @name RotateApiKey
     * @summary Rotate an API key: it gets a new secret, and the previous one works for a limited time
     * @request POST:/api-keys/{id}:rotate
     * @secure
     */
    rotateApiKey: (
      id: string,
      data?: {
        /**
         * @min 0
         * @max 604800
         * @default 86400
         */
        overlap_seconds?: number;
      },
      params: RequestParams = {},
    ) =>
      this.request<ApiKeyWithSecret, Problem>({
        path: `/api-keys/${encodeURIComponent(id)}:rotate`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),
  };
  events = {
    /**
     * @description Each type requires the read scope of its resource: orders:read, invoices:read, payments:read, and exports:read for export.completed. Types that the credential may not read are left out; one that is named in type is refused (403). A stream ends when one of these scopes is taken from its reader: it resumes with Last-Event-ID, without that type. Permitted with a user’s token or a workload’s token or an API key that has the scope events:read. Items are ordered by position. Rate class: default. Deadline: 10 s.
     *
     * @tags Events
     * @name ListEvents
     * @summary Read the published facts, as a page or as a stream of server-sent events
     * @request GET:/events
     * @secure
     */
    listEvents: (
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
        /** Only facts of these types, separated by commas. */
        type?:
          | "order.created"
          | "order.cancelled"
          | "invoice.approved"
          | "invoice.paid"
          | "invoice.voided"
          | "payment.succeeded"
          | "payment.failed"
          | "payment.refunded"
          | "export.completed"
          | "ledger.manifest";
        /**
         * Only items of this subject.
         * @minLength 1
         * @maxLength 500
         */
        subject?: string;
        /**
         * Start at this position of the log; facts of earlier positions that are released later are included.
         * @pattern ^\d{1,19}$
         */
        from_position?: string;
        /** Start with the facts of this time and later ones. */
        from_time?: TimeParameter;
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: CloudEvent[];
          page: {
            /** Always present. A reader that follows it misses no fact that it may read; at the end of the log it waits for new ones. Facts that were left out for want of a scope are not sent later: with the scope, read their type from the beginning. */
            next_cursor: string;
            /** May be true of a page without items, when the filters excluded many facts: continue with the cursor. */
            has_more: boolean;
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/events`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description A range has at most 20000 facts of the tenant, of all topics together. A longer history is proved in several ranges, one after the other. Permitted with a user’s token or a workload’s token or an API key that has the scope events:read. Rate class: default. Deadline: 10 s.
     *
     * @tags Events
     * @name ReadEventsManifest
     * @summary Count and hash the published facts of a range of positions, to prove a copy complete
     * @request GET:/events/manifest
     * @secure
     */
    readEventsManifest: (
      query?: {
        /** The topic; by default all topics whose facts the credential may read, with an item for each. */
        topic?:
          | "ledger.order.v1"
          | "ledger.invoice.v1"
          | "ledger.payment.v1"
          | "ledger.operation.v1";
        /**
         * The first position of the range; 0 by default.
         * @pattern ^\d{1,19}$
         */
        from?: string;
        /**
         * The last position of the range, inclusive; by default the last one whose facts are known, or that of the fact with the number 20000: to_position says so, and the next range begins after it.
         * @pattern ^\d{1,19}$
         */
        to?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: FactManifest[];
        },
        Problem
      >({
        path: `/events/manifest`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),
  };
  subscriptions = {
    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope events:subscribe. An Idempotency-Key makes the request safe to repeat. Rate class: default. Deadline: 10 s.
     *
     * @tags Subscriptions
     * @name CreateSubscription
     * @summary Create a subscription, which delivers facts to a Kafka topic of its own
     * @request POST:/subscriptions
     * @secure
     */
    createSubscription: (data: NewSubscription, params: RequestParams = {}) =>
      this.request<Subscription, Problem>({
        path: `/subscriptions`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope events:subscribe. Items are ordered by created_at (descending), then id (descending). Rate class: default. Deadline: 10 s.
     *
     * @tags Subscriptions
     * @name ListSubscriptions
     * @summary List the subscriptions of the tenant, newest first
     * @request GET:/subscriptions
     * @secure
     */
    listSubscriptions: (
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
        /** Only items that were created after this time. */
        created_after?: TimeParameter;
        /** Only items that were created before this time. */
        created_before?: TimeParameter;
        /** Only items in this state. */
        state?: "active" | "paused" | "stopped";
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: Subscription[];
          page: {
            next_cursor: string | null;
            has_more: boolean;
            /** The position of the log up to which the list is complete. */
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/subscriptions`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope events:subscribe. Rate class: default. Deadline: 10 s.
     *
     * @tags Subscriptions
     * @name ReadSubscription
     * @summary Read a subscription and the progress of its delivery
     * @request GET:/subscriptions/{id}
     * @secure
     */
    readSubscription: (id: string, params: RequestParams = {}) =>
      this.request<Subscription, void | Problem>({
        path: `/subscriptions/${encodeURIComponent(id)}`,
        method: "GET",
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope events:subscribe. Rate class: default. Deadline: 10 s.
     *
     * @tags Subscriptions
     * @name DeleteSubscription
     * @summary Delete a subscription together with its topics
     * @request DELETE:/subscriptions/{id}
     * @secure
     */
    deleteSubscription: (id: string, params: RequestParams = {}) =>
      this.request<void, Problem>({
        path: `/subscriptions/${encodeURIComponent(id)}`,
        method: "DELETE",
        secure: true,
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope events:subscribe. Rate class: default. Deadline: 10 s.
     *
     * @tags Subscriptions
     * @name PauseSubscription
     * @summary Pause the delivery; a stopped subscription is returned unchanged
     * @request POST:/subscriptions/{id}:pause
     * @secure
     */
    pauseSubscription: (
      id: string,
      data?: object,
      params: RequestParams = {},
    ) =>
      this.request<Subscription, Problem>({
        path: `/subscriptions/${encodeURIComponent(id)}:pause`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope events:subscribe. Rate class: default. Deadline: 10 s.
     *
     * @tags Subscriptions
     * @name ResumeSubscription
     * @summary Resume the delivery where it was paused, or where it was stopped once its creator is permitted again
     * @request POST:/subscriptions/{id}:resume
     * @secure
     */
    resumeSubscription: (
      id: string,
      data?: object,
      params: RequestParams = {},
    ) =>
      this.request<Subscription, Problem>({
        path: `/subscriptions/${encodeURIComponent(id)}:resume`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope events:subscribe. An Idempotency-Key makes the request safe to repeat. Rate class: replays. Deadline: 10 s.
     *
     * @tags Subscriptions
     * @name ReplaySubscription
     * @summary Deliver the facts again from an earlier position, byte for byte the same; it replaces a replay in progress
     * @request POST:/subscriptions/{id}:replay
     * @secure
     */
    replaySubscription: (
      id: string,
      data: NewReplay,
      params: RequestParams = {},
    ) =>
      this.request<Operation, Problem>({
        path: `/subscriptions/${encodeURIComponent(id)}:replay`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope events:subscribe. Items are ordered by position. Rate class: default. Deadline: 10 s.
     *
     * @tags Subscriptions
     * @name ListDeadLetters
     * @summary List the facts that could not be delivered, and the later ones of the same keys, in the order of delivery
     * @request GET:/subscriptions/{id}/dead-letters
     * @secure
     */
    listDeadLetters: (
      id: string,
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: DeadLetter[];
          page: {
            next_cursor: string | null;
            has_more: boolean;
            /** The position of the log up to which the list is complete. */
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/subscriptions/${encodeURIComponent(id)}/dead-letters`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),
  };
  accounts = {
    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope ledger:read. Items are ordered by code. Rate class: default. Deadline: 10 s.
     *
     * @tags Books
     * @name ListAccounts
     * @summary List the accounts that have entries, with their balances
     * @request GET:/accounts
     * @secure
     */
    listAccounts: (
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
        /** The books as they were at this time; entries of the last ten seconds may still arrive. 503 while the books lack events. */
        as_of?: TimeParameter;
        /**
         * The books as of this position of the log. Not together with as_of.
         * @pattern ^\d{1,19}$
         */
        as_of_position?: string;
        /** Only items in this currency. */
        currency?: Currency;
        /**
         * Only receivables of this customer.
         * @minLength 1
         * @maxLength 500
         */
        customer_reference?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: Account[];
          page: {
            next_cursor: string | null;
            has_more: boolean;
            /** The position of the log up to which the list is complete. */
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/accounts`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope ledger:read. Rate class: default. Deadline: 10 s.
     *
     * @tags Books
     * @name ReadAccount
     * @summary Read an account with its balances
     * @request GET:/accounts/{code}
     * @secure
     */
    readAccount: (
      code: string,
      query?: {
        /** The books as they were at this time; entries of the last ten seconds may still arrive. 503 while the books lack events. */
        as_of?: TimeParameter;
        /**
         * The books as of this position of the log. Not together with as_of.
         * @pattern ^\d{1,19}$
         */
        as_of_position?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<Account, void | Problem>({
        path: `/accounts/${encodeURIComponent(code)}`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope ledger:read. Items are ordered by position (descending). Rate class: default. Deadline: 10 s.
     *
     * @tags Books
     * @name ListAccountEntries
     * @summary List the journal entries with a posting to the account, newest first
     * @request GET:/accounts/{code}/entries
     * @secure
     */
    listAccountEntries: (
      code: string,
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
        /** The books as they were at this time; entries of the last ten seconds may still arrive. 503 while the books lack events. */
        as_of?: TimeParameter;
        /**
         * The books as of this position of the log. Not together with as_of.
         * @pattern ^\d{1,19}$
         */
        as_of_position?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: JournalEntry[];
          page: {
            next_cursor: string | null;
            has_more: boolean;
            /** The position of the log up to which the list is complete. */
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/accounts/${encodeURIComponent(code)}/entries`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),
  };
  trialBalance = {
    /**
     * @description In each currency the debits of all accounts are their credits. All pages are of one position. Permitted with a user’s token or a workload’s token or an API key that has the scope ledger:read. Items are ordered by account. Rate class: default. Deadline: 10 s.
     *
     * @tags Books
     * @name ReadTrialBalance
     * @summary Read the debits and credits of every account
     * @request GET:/trial-balance
     * @secure
     */
    readTrialBalance: (
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
        /** The books as they were at this time; entries of the last ten seconds may still arrive. 503 while the books lack events. */
        as_of?: TimeParameter;
        /**
         * The books as of this position of the log. Not together with as_of.
         * @pattern ^\d{1,19}$
         */
        as_of_position?: string;
        /** Only items in this currency. */
        currency?: Currency;
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: TrialBalanceRow[];
          page: {
            next_cursor: string | null;
            has_more: boolean;
            /** The position of the log up to which the list is complete. */
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/trial-balance`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),
  };
  journalEntries = {
    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope ledger:read. Items are ordered by position (descending). Rate class: default. Deadline: 10 s.
     *
     * @tags Books
     * @name ListJournalEntries
     * @summary List the entries of the journal, newest first
     * @request GET:/journal-entries
     * @secure
     */
    listJournalEntries: (
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
        /** The books as they were at this time; entries of the last ten seconds may still arrive. 503 while the books lack events. */
        as_of?: TimeParameter;
        /**
         * The books as of this position of the log. Not together with as_of.
         * @pattern ^\d{1,19}$
         */
        as_of_position?: string;
        /**
         * Only entries with a posting to this account.
         * @pattern ^[a-z-]{1,40}\.[A-Z]{3}(\.[A-Za-z0-9._~-]{1,120})?$
         */
        account?: string;
        /**
         * Only items of this order.
         * @pattern ^ord_[0-9A-HJKMNP-TV-Z]{26}$
         */
        order_id?: string;
        /**
         * Only items of this invoice.
         * @pattern ^inv_[0-9A-HJKMNP-TV-Z]{26}$
         */
        invoice_id?: string;
        /**
         * Only items of this payment.
         * @pattern ^pay_[0-9A-HJKMNP-TV-Z]{26}$
         */
        payment_id?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: JournalEntry[];
          page: {
            next_cursor: string | null;
            has_more: boolean;
            /** The position of the log up to which the list is complete. */
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/journal-entries`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token or an API key that has the scope ledger:read. Rate class: default. Deadline: 10 s.
     *
     * @tags Books
     * @name ReadJournalEntry
     * @summary Read an entry of the journal
     * @request GET:/journal-entries/{id}
     * @secure
     */
    readJournalEntry: (
      id: string,
      query?: {
        /** The books as they were at this time; entries of the last ten seconds may still arrive. 503 while the books lack events. */
        as_of?: TimeParameter;
        /**
         * The books as of this position of the log. Not together with as_of.
         * @pattern ^\d{1,19}$
         */
        as_of_position?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<JournalEntry, void | Problem>({
        path: `/journal-entries/${encodeURIComponent(id)}`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),
  };
  auditRecords = {
    /**
     * @description Looking at them is an audit record itself. Permitted with a user’s token or a workload’s token or an API key that has the scope audit:read. Items are ordered by created_at (descending), then id (descending). Rate class: default. Deadline: 10 s.
     *
     * @tags Audit
     * @name ListAuditRecords
     * @summary List the decisions on sensitive operations, newest first
     * @request GET:/audit-records
     * @secure
     */
    listAuditRecords: (
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
        /** Only items that were created after this time. */
        created_after?: TimeParameter;
        /** Only items that were created before this time. */
        created_before?: TimeParameter;
        /** Only grants, or only denials. */
        decision?: "granted" | "denied";
        /**
         * The operationId of this document.
         * @minLength 1
         * @maxLength 500
         */
        operation?: string;
        /**
         * Only items of this subject.
         * @minLength 1
         * @maxLength 500
         */
        subject?: string;
        /**
         * Only decisions about this resource.
         * @minLength 1
         * @maxLength 500
         */
        resource?: string;
        /**
         * Only decisions on the request with this correlation id.
         * @minLength 1
         * @maxLength 500
         */
        correlation_id?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: AuditRecord[];
          page: {
            next_cursor: string | null;
            has_more: boolean;
            /** The position of the log up to which the list is complete. */
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/audit-records`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),
  };
  projections = {
    /**
     * @description For callers of the tenant of the operators (setting OPERATORS_TENANT). Permitted with a user’s token or a workload’s token that has the scope projections:operate. Rate class: default. Deadline: 10 s.
     *
     * @tags Projections
     * @name ListProjections
     * @summary List the read models of the installation, how far they are behind the log, and their newest rebuilds
     * @request GET:/projections
     * @secure
     */
    listProjections: (params: RequestParams = {}) =>
      this.request<ProjectionList, Problem>({
        path: `/projections`,
        method: "GET",
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope projections:operate. Rate class: default. Deadline: 10 s.
     *
     * @tags Projections
     * @name RebuildProjection
     * @summary Build new tables from the log beside the live ones, compare them, and switch if they are equal
     * @request POST:/projections/{name}:rebuild
     * @secure
     */
    rebuildProjection: (
      name:
        | "orders"
        | "invoices"
        | "payments"
        | "operations"
        | "apiKeys"
        | "subscriptions"
        | "facts"
        | "audit"
        | "books",
      data?: {
        /**
         * Switches the tables of the newest rebuild, which was refused.
         * @default false
         */
        accept_differences?: boolean;
        /**
         * Required to accept differences.
         * @minLength 1
         * @maxLength 500
         */
        reason?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<ProjectionRebuild, Problem>({
        path: `/projections/${encodeURIComponent(name)}:rebuild`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description A rebuild that is under way compares too, and is returned in place of another one. Permitted with a user’s token or a workload’s token that has the scope projections:operate. Rate class: default. Deadline: 10 s.
     *
     * @tags Projections
     * @name VerifyProjection
     * @summary Compare the tables of a read model with new ones from the log, and change nothing
     * @request POST:/projections/{name}:verify
     * @secure
     */
    verifyProjection: (
      name:
        | "orders"
        | "invoices"
        | "payments"
        | "operations"
        | "apiKeys"
        | "subscriptions"
        | "facts"
        | "audit"
        | "books",
      data?: object,
      params: RequestParams = {},
    ) =>
      this.request<ProjectionRebuild, Problem>({
        path: `/projections/${encodeURIComponent(name)}:verify`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope projections:operate. Rate class: default. Deadline: 10 s.
     *
     * @tags Projections
     * @name RollBackProjection
     * @summary Put the tables before the last rebuild back, with the events since
     * @request POST:/projections/{name}:rollback
     * @secure
     */
    rollBackProjection: (
      name:
        | "orders"
        | "invoices"
        | "payments"
        | "operations"
        | "apiKeys"
        | "subscriptions"
        | "facts"
        | "audit"
        | "books",
      data?: object,
      params: RequestParams = {},
    ) =>
      this.request<ProjectionRebuild, Problem>({
        path: `/projections/${encodeURIComponent(name)}:rollback`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),

    /**
     * @description Permitted with a user’s token or a workload’s token that has the scope projections:operate. Rate class: default. Deadline: 10 s.
     *
     * @tags Projections
     * @name CancelProjectionRebuild
     * @summary End the rebuild of a read model; the live tables stay
     * @request POST:/projections/{name}:cancel
     * @secure
     */
    cancelProjectionRebuild: (
      name:
        | "orders"
        | "invoices"
        | "payments"
        | "operations"
        | "apiKeys"
        | "subscriptions"
        | "facts"
        | "audit"
        | "books",
      data?: object,
      params: RequestParams = {},
    ) =>
      this.request<ProjectionRebuild, Problem>({
        path: `/projections/${encodeURIComponent(name)}:cancel`,
        method: "POST",
        body: data,
        secure: true,
        type: "application/json",
        format: "json",
        ...params,
      }),
  };
  audit = {
    /**
     * @description The heads are also in a file outside the databases. Looking at them is an audit record. Permitted with a user’s token or a workload’s token or an API key that has the scope audit:read. Items are ordered by generation (descending), then tree_size (descending). Rate class: default. Deadline: 10 s.
     *
     * @tags Audit
     * @name ListAuditHeads
     * @summary List the signed heads of the tree over all events, newest first
     * @request GET:/audit/heads
     * @secure
     */
    listAuditHeads: (
      query?: {
        /**
         * The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.
         * @min 1
         * @max 100
         * @default 25
         */
        limit?: number;
        /**
         * The cursor of the page before, with the same filters; the first page by default.
         * @minLength 1
         * @maxLength 1024
         */
        cursor?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<
        {
          items: AuditHead[];
          page: {
            next_cursor: string | null;
            has_more: boolean;
            /** The position of the log up to which the list is complete. */
            as_of_position: string;
          };
        },
        Problem
      >({
        path: `/audit/heads`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),

    /**
     * @description The inclusion proof of an event of the caller’s tenant, with the signed head that it leads to. An event is sealed some seconds after it was stored; until then it is a 404. Events of API keys and idempotency records are withheld, as histories withhold them. Looking at a proof is an audit record. Permitted with a user’s token or a workload’s token or an API key that has the scope audit:read. Rate class: default. Deadline: 10 s.
     *
     * @tags Audit
     * @name ReadAuditProof
     * @summary Prove that an event is in the log as it was stored
     * @request GET:/audit/proof/{event_id}
     * @secure
     */
    readAuditProof: (
      eventId: string,
      query?: {
        /**
         * The size of the signed head to prove against; the newest one by default.
         * @pattern ^\d{1,19}$
         */
        tree_size?: string;
      },
      params: RequestParams = {},
    ) =>
      this.request<AuditProof, Problem>({
        path: `/audit/proof/${encodeURIComponent(eventId)}`,
        method: "GET",
        query: query,
        secure: true,
        format: "json",
        ...params,
      }),
  };
}
