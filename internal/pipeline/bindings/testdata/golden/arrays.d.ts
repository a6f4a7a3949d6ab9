// ---- "lists"

export interface ListsInput {
  plain?: any[];
  strings?: string[];
  nested?: (number | null)[][];
  objects?: {
    /** The id. */
    id: number;
  }[];
  /** @maxItems 0 */
  none?: [];
  never?: never[];
  inferred?: string[];
  enums?: ("a" | "b")[];
}

export function lists(input?: ListsInput): Promise<any>;
export function lists(plain?: any[], strings?: string[], nested?: (number | null)[][], objects?: ListsInput["objects"], none?: [], never?: never[], inferred?: string[], enums?: ("a" | "b")[]): Promise<any>;

// ---- "tuples"

export interface TuplesInput {
  /** @minItems 2 @maxItems 2 */
  point?: [number, number];
  /** @minItems 1 */
  open?: [string, (number | boolean)?, ...any[]];
  /** @minItems 1 */
  rest?: [string, ...number[]];
  closed?: [string?, number?];
  /** @minItems 2 */
  documented?: [/** Degrees *\/ north. */ number, number];
}

export function tuples(input?: TuplesInput): Promise<any>;
export function tuples(point?: [number, number], open?: [string, (number | boolean)?, ...any[]], rest?: [string, ...number[]], closed?: [string?, number?], documented?: TuplesInput["documented"]): Promise<any>;

// ---- "draft4"

export interface Draft4Input {
  pair?: [string?, number?];
  more?: [string?, ...boolean[]];
  /** @minimum 0 @exclusiveMinimum */
  min?: number;
}

export function draft4(input?: Draft4Input): Promise<any>;
export function draft4(pair?: [string?, number?], more?: [string?, ...boolean[]], min?: number): Promise<any>;

// ---- "deep"

export interface DeepInput {
  a?: {
    x?: {
      x?: {
        x?: {
          x?: {
            x?: {
              x?: {
                x?: {
                  x?: {
                    x?: {
                      x?: {
                        x?: {
                          x?: {
                            x?: {
                              x?: {
                                x?: {
                                  x?: {
                                    x?: {
                                      x?: {
                                        x?: {
                                          x?: {
                                            x?: {
                                              x?: {
                                                x?: {
                                                  x?: {
                                                    x?: {
                                                      x?: {
                                                        x?: {
                                                          x?: {
                                                            x?: {
                                                              x?: {
                                                                x?: {
                                                                  x?: {
                                                                    x?: {
                                                                      x?: {
                                                                        x?: {
                                                                          x?: {
                                                                            x?: {
                                                                              x?: {
                                                                                x?: {
                                                                                  x?: {
                                                                                    x?: { x?: { x?: { x?: { x?: { x?: { x?: { x?: any /* nested too deeply */ } } } } } } };
                                                                                  };
                                                                                };
                                                                              };
                                                                            };
                                                                          };
                                                                        };
                                                                      };
                                                                    };
                                                                  };
                                                                };
                                                              };
                                                            };
                                                          };
                                                        };
                                                      };
                                                    };
                                                  };
                                                };
                                              };
                                            };
                                          };
                                        };
                                      };
                                    };
                                  };
                                };
                              };
                            };
                          };
                        };
                      };
                    };
                  };
                };
              };
            };
          };
        };
      };
    };
  };
}

export function deep(input?: DeepInput): Promise<any>;

