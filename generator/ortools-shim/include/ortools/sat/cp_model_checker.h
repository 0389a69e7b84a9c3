// The checker's declarations stand in cp_model.h of this folder.
#pragma once

#include "ortools/sat/cp_model.h"
