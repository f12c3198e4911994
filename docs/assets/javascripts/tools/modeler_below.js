// The parts below the modeler's first screen, as one file that is loaded when a reader comes near.

import { exploration } from "./modeler_explore.js";
import { memorySection, pipelineSection, utilisationSection } from "./modeler_sections.js";
import { linksSection, trafficSection } from "./modeler_traffic.js";

export { exploration, linksSection, memorySection, pipelineSection, trafficSection, utilisationSection };
